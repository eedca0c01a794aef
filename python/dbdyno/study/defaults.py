"""What a study has where it says nothing: which difference matters, and how much is measured."""

DEFAULT_MARGIN = 0.03  # 3 %: the smallest difference that matters
DEFAULT_MAX_BLOCKS = 40  # after which a run ends that is still undecided
DEFAULT_AA_BLOCKS = 10  # of `dbdyno aa`, for each host
DEFAULT_CUTS = 300  # of 30 runs: nothing lost in them shows at most 9.5 %, with 95 % confidence
DEFAULT_CUTS_PER_RUN = 10
