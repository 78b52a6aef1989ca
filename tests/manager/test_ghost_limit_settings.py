"""HD-360: how much may be ghost, as the manager's file says it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gatelift.own_settings import QuotaRelease


@pytest.mark.parametrize(("said", "limit"), [(1, 1.0), (0, 0.0), (0.5, 0.5), ("none", "none")])
def test_hd_360_a_limit_is_a_factor_or_none(said: object, limit: object) -> None:
    assert QuotaRelease.model_validate({"ghostLimit": said}).ghost_limit == limit


@pytest.mark.parametrize("said", [-1, "much", 1001])
def test_hd_360_another_limit_is_refused(said: object) -> None:
    with pytest.raises(ValidationError):
        QuotaRelease.model_validate({"ghostLimit": said})
