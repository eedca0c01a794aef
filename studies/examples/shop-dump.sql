-- The tables of shop.log beside this file, as mariadb-dump writes them, but shorter.
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;

DROP TABLE IF EXISTS `items`;
CREATE TABLE `items` (
  `id` int NOT NULL AUTO_INCREMENT,
  `name` varchar(60) NOT NULL,
  `stock` int NOT NULL,
  PRIMARY KEY (`id`)
);
INSERT INTO `items` (`name`, `stock`) VALUES ('it''s a kettle; red',1000),('a "cup"',1000),('a pan\nof iron',1000),('a jar',1000);
INSERT INTO `items` (`name`, `stock`) SELECT CONCAT(a.`name`, ', ', b.`id`), 1000 FROM `items` a, `items` b;
INSERT INTO `items` (`name`, `stock`) SELECT CONCAT(a.`name`, ', ', b.`id`), 1000 FROM `items` a, `items` b;

DROP TABLE IF EXISTS `orders`;
CREATE TABLE `orders` (
  `id` int NOT NULL AUTO_INCREMENT,
  `item` int NOT NULL,
  `amount` int NOT NULL,
  `note` text,
  PRIMARY KEY (`id`),
  KEY `item` (`item`)
);

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
