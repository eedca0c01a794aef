"""What holds where a study says nothing, and more than its own section asks for it."""

DEFAULT_MARGIN = 0.03  # 3 %: the smallest difference that matters
DEFAULT_MAX_BLOCKS = 40  # after which a run ends that is still undecided
