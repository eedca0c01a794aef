"""The filesystems there are, one file for each family: how one is made, and what a study may say of it."""
