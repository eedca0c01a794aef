"""Profiles of the server, one of each treatment: which functions its processors were in, from a trial of its own."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from dbdyno.store.documents import VALUES_MAX, json_object, see_that_it_is_moderate, value_of
from dbdyno.store.parts import read_part, unread, write_synced

PROFILES = "profiles"  # a folder of the run folder, with a file for each treatment
BYTES_MAX = 8 * 1024**2
FRAMES_MAX, FRAME_CHARACTERS_MAX = 128, 200  # of a stack
STACKS_MAX = 20_000
BETWEEN = ";"  # two frames of a folded stack, the outermost first


@dataclass(frozen=True)
class Profile:
    """Samples of the server's stacks while a load was measured."""

    treatment: str  # id
    event: str  # that was sampled, as perf calls it
    hertz: int  # samples a second of each processor that the server used
    seconds: float  # measured
    queries: float  # that were done meanwhile; 0: unknown
    lost: int  # samples that were not kept, with stacks that were seldom met
    stacks: dict[str, int]  # folded -> samples

    def __post_init__(self) -> None:
        """Raise ``ValueError`` where a figure is none, or a stack is beyond bounds."""
        if not (self.hertz > 0 and self.seconds > 0 and self.queries >= 0 and self.lost >= 0):
            raise ValueError("a figure of the profile is out of range")
        if len(self.stacks) > STACKS_MAX or any(count < 1 for count in self.stacks.values()):
            raise ValueError("it holds too many stacks, or one without samples")
        for stack in self.stacks:
            frames = stack.split(BETWEEN)
            if len(frames) > FRAMES_MAX or max(map(len, frames)) > FRAME_CHARACTERS_MAX:
                raise ValueError("a stack is deeper, or a name longer, than any that is written")

    @property
    def samples(self) -> int:
        """All that were kept."""
        return sum(self.stacks.values())

    @property
    def us_per_sample(self) -> float:
        """Processor time that a sample stands for, in microseconds a query, where queries are known."""
        return 1e6 / self.hertz / self.queries


def file_of(treatment: str) -> str:
    """Return where a treatment's profile lies below the run folder."""
    return f"{PROFILES}/{treatment}.json"


def write_profile(path: Path, profile: Profile) -> None:
    """Store a profile. Raises ``OSError``."""
    write_synced(path / file_of(profile.treatment), json.dumps(asdict(profile), indent=0).encode())


def with_profile(path: Path, treatments: Collection[str]) -> set[str]:
    """Return which of these treatments have a profile."""
    return {id_ for id_ in treatments if (path / file_of(id_)).is_file()}


def read_profiles(path: Path, treatments: Collection[str]) -> Mapping[str, Profile]:
    """Return the profiles of a run by treatment; nothing where none was taken. Raises ``DamageError``."""
    profiles = {}
    for id_ in with_profile(path, [id_ for id_ in treatments if re.fullmatch(r"\w+", id_)]):
        part = file_of(id_)
        try:
            profiles[id_] = _profile_in(read_part(path, part, BYTES_MAX), id_)
        except (ValueError, OSError) as error:
            remedy = "remove it; --profile with --resume takes it again"
            raise unread(path / part, error, remedy) from None
    return profiles


def _profile_in(content: bytes, treatment: str) -> Profile:
    """Return the profile that a file holds. Raises ``ValueError``."""
    see_that_it_is_moderate(content, VALUES_MAX)
    profile = value_of(Profile, json_object(content))
    if profile.treatment != treatment:
        raise ValueError("it is of another treatment")
    return profile
