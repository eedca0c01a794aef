"""What every section of a study file is made of."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StrictBool, StrictFloat, StrictInt, StrictStr

Setting = StrictBool | StrictInt | StrictFloat | StrictStr


class Section(BaseModel):
    """A section of the study file: unknown keys are errors, values are not bent into other types."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _one_line(text: str) -> str:
    if not text.strip() or any(ord(char) < ord(" ") for char in text):
        raise ValueError("must be one line of text")
    return text.strip()


def matching(pattern: str, otherwise: str) -> AfterValidator:
    """Return what refuses a text that is not of a pattern, for the reason given."""

    def checked(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(otherwise)
        return text

    return AfterValidator(checked)


Line = Annotated[str, AfterValidator(_one_line)]
HostName = Annotated[str, matching(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}", "must be letters, digits and hyphens, at most 40")]
Identifier = Annotated[
    str, matching(r"[A-Za-z][A-Za-z0-9_]*", "must be a plain name of letters, digits and underscores")
]
