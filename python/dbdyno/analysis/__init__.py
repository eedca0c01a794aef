"""Pure statistics: from trials to estimates and verdicts."""
