"""The run folder: the only thing analysis and report ever see."""
