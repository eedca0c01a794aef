"""Files that a configuration of ssh leads to: what another user could change is refused, wherever it is named."""

import os

import pytest

from dbdyno.hosts.ssh_config import why_ssh_is_open_to_others

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
KINDS = {
    "Include": "Include {}",
    "Include with a sign": "include={}",
    "Include of several": "Include {own} {}",
    "Include in quotes": 'Include "{}"',
    "Include of a pattern": "Include {folder}/*.theirs",
    "Include in a section": "Host other\n    Include {}",
    "ProxyCommand": "ProxyCommand {} %h %p",
    "ProxyCommand in quotes": 'ProxyCommand "{} %h"',
    "ProxyCommand that another program runs": "ProxyCommand /bin/sh {}",
    "Match exec": 'Match exec "{} %h"\n    User root',
    "Match of more": "Match host a exec {}\n    User root",
    "LocalCommand": "PermitLocalCommand yes\nLocalCommand {}",
    "KnownHostsCommand": "KnownHostsCommand {} %H",
    "PKCS11Provider": "PKCS11Provider {}",
    "SecurityKeyProvider": "SecurityKeyProvider={}",
    "UserKnownHostsFile": "UserKnownHostsFile /dev/null {}",
    "GlobalKnownHostsFile": "GlobalKnownHostsFile {}",
    "IdentityFile": "IdentityFile {}",
    "IdentityFile in a section": "Host db1\n  IdentityFile={}",
    "CertificateFile": 'CertificateFile "{}"',
    "RevokedHostKeys": "RevokedHostKeys {}",
    "XAuthLocation": "XAuthLocation {}",
    "ControlPath": "ControlPath {}",
    "IdentityAgent": "IdentityAgent {}",
}


def config_with(tmp_path, line):
    theirs, own = tmp_path / "it.theirs", tmp_path / "own"
    theirs.touch()
    own.touch()
    config = tmp_path / "config"
    config.write_text(
        line.replace("{own}", str(own)).replace("{folder}", str(tmp_path)).replace("{}", str(theirs)) + "\n"
    )
    return config, theirs


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_user_could_change_is_refused(tmp_path, kind):
    config, theirs = config_with(tmp_path, KINDS[kind])
    assert not why_ssh_is_open_to_others(config)
    os.chown(theirs, 65534, 65534)
    assert f"{theirs} belongs to another user (uid 65534)" in why_ssh_is_open_to_others(config)


def test_files_that_are_included_by_others_are_looked_at_and_those_that_include_themselves_end(tmp_path):
    config, theirs = config_with(tmp_path, f"Include {tmp_path}/second")
    (tmp_path / "second").write_text(f"Include {config}\nInclude {theirs}\n")
    assert not why_ssh_is_open_to_others(config)
    theirs.chmod(0o666)
    assert f"{theirs} can be written by others" in why_ssh_is_open_to_others(config)


def test_a_file_in_the_user_s_folder_of_ssh_and_one_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home/.ssh").mkdir(parents=True)
    named = tmp_path / "home/.ssh/more"
    config, _ = config_with(tmp_path, "Include more\nInclude none/*\nProxyCommand none\nUserKnownHostsFile ~/.ssh/more")
    assert not why_ssh_is_open_to_others(config)
    named.touch()
    os.chown(named, 65534, 65534)
    assert str(named) in why_ssh_is_open_to_others(config)


def test_what_ssh_itself_fills_in_is_no_file_of_ours_to_look_at(tmp_path):
    lines = [
        "# Include /tmp/x",
        "ControlPath ~/.ssh/%C",
        "ProxyCommand none",
        'Host "unended',
        "IdentityAgent SSH_AUTH_SOCK",
    ]
    config, _ = config_with(tmp_path, "\n".join(lines))
    assert not why_ssh_is_open_to_others(config)


@pytest.mark.parametrize("line", ["IdentityFile key", "CertificateFile key"])
def test_a_key_is_looked_for_where_ssh_is_started_too(tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    config, _ = config_with(tmp_path, line)
    (tmp_path / "key").touch()
    assert not why_ssh_is_open_to_others(config)
    (tmp_path / "key").chmod(0o662)
    assert f"{tmp_path}/key can be written by others" in why_ssh_is_open_to_others(config)


@pytest.mark.parametrize("line", ["ProxyCommand {folder}/open/x %h", "IdentityFile {folder}/open/x"])
def test_what_is_not_there_and_anybody_could_make_is_refused(tmp_path, line):
    config, _ = config_with(tmp_path, line)
    assert not why_ssh_is_open_to_others(config)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o1777)
    assert f"others could create it in {tmp_path}/open" in why_ssh_is_open_to_others(config)
