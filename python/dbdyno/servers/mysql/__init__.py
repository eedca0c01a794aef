"""MySQL, MariaDB and their kin: started, logged in to, asked and stopped."""
