"""What is proved before a real disk is erased."""
