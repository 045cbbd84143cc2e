"""The token file: roles, and one sentence for each error."""

from pathlib import Path

import pytest

from services.coordinator.api.tokens import TokenFile, parse_tokens
from services.coordinator.settings import Settings
from shared.config.configure import read_settings

LONG = "0123456789abcdef"


def test_roles_by_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# people\n\nviewer:{LONG}v\noperator:{LONG}o\n")
    tokens = TokenFile(path)
    assert [tokens.role(f"{LONG}{tail}") for tail in "vox"] == ["viewer", "operator", None]
    assert LONG not in repr(vars(tokens))


def test_blanks_around_a_token_are_stripped(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"operator: {LONG}o \n")
    assert TokenFile(path).role(f"{LONG}o") == "operator"
    with pytest.raises(ValueError, match="line 1: the token must have at least 16 characters"):
        parse_tokens(f"viewer:{' ' * 20}\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "the token file has no token: add a line `operator:TOKEN`"),
        ("# no token\n", "the token file has no token"),
        (f"admin:{LONG}", "line 1: the role must be viewer or operator, as in `viewer:TOKEN`"),
        (LONG, "line 1: the role must be viewer or operator"),
        (f"viewer:{LONG}é", "line 1: the token must consist of printable ASCII characters"),
        (f"viewer:{LONG}\noperator:short", "line 2: the token must have at least 16 characters"),
    ],
)
def test_an_invalid_line_is_named_by_number_only(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence.replace("`", ".")) as caught:
        parse_tokens(text)
    assert LONG not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({}, "ZELDA_COORDINATOR__TOKENS_FILE: field required"),
        ({"ZELDA_COORDINATOR__TOKENS_FILE": "/no/file"}, "ZELDA_COORDINATOR__TOKENS_FILE: no file '/no/file'"),
        ({"ZELDA_COORDINATOR__TOKEN_FILE": "x"}, "ZELDA_COORDINATOR__TOKEN_FILE: no such setting; did you mean"),
        ({"ZELDA_COORDINATOR__INTERVAL_S": "0"}, "ZELDA_COORDINATOR__INTERVAL_S: input should be greater than"),
        ({"ZELDA_COORDINATOR__LEASE_S": "long"}, "ZELDA_COORDINATOR__LEASE_S: input should be a valid number"),
        ({"ZELDA_COORDINATOR__BURST": "0"}, "ZELDA_COORDINATOR__BURST: input should be greater than or equal to 1"),
    ],
)
def test_invalid_settings_are_named(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], problem: str) -> None:
    wanted = {"ZELDA_STORE__URL": "memory://", **environment}
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    settings, problems = read_settings(Settings, wanted)
    assert settings is None
    assert any(found.startswith(problem) for found in problems), problems
