"""What this machine lacks is told before anything is made on Azure."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pytest

from components.preflight.checks import check_all, check_login
from tests.support.case_files import case_table


@case_table(__file__, "logins")
def test_a_login_needs_its_programs_on_path(
    login: str | None, there: list[str], missing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in there:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    if not missing:
        check_login(login, "prod")
        return
    with pytest.raises(pulumi.RunError) as refused:
        check_login(login, "prod")
    first, *others = str(refused.value).splitlines()
    assert first.startswith(f"PATH has no {' and no '.join(missing)}, by which cluster.login")
    assert [name for name in ("kubelogin", "az") if any(line.startswith(f"    {name}: ") for line in others)] == missing
    assert others[-1].endswith("pulumi config set -s prod --path cluster.localAccounts true && pulumi up -s prod")


def test_what_is_refused_is_told_together() -> None:
    def refuse(why: str) -> None:
        raise pulumi.RunError(why)

    with pytest.raises(pulumi.RunError, match="no quota\n\nno rights"):
        check_all([lambda: refuse("no quota"), lambda: None, lambda: refuse("no rights")])
    check_all([lambda: None])
