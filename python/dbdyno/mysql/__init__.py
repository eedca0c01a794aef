"""What dbdyno knows of MySQL and MariaDB without asking a server: names of settings and counters, what they mean."""
