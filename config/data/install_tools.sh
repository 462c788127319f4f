#!/bin/bash
# Installs what a jump box is for. Behind these functions stand their calls (config/data/jump_box.py writes them).
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

get() { # url file
    curl --fail --silent --show-error --location --proto =https --proto-redir =https --retry 8 --retry-all-errors --output "$2" "$1"
}

# The SHA-256 that a file of checksums has for a name; one with no names in it has one checksum.
expected() { # checksums name
    awk -v name="$2" '{ sub(/^.*\//, "", $2); sub(/^\*/, "", $2) } NF == 1 || $2 == name { print $1; exit }' "$1"
}

release() { # tool url checksums members
    local file=${2##*/} sum
    get "$2" "$file"
    get "$3" checksums
    sum=$(expected checksums "$file")
    if ! [[ $sum =~ ^[0-9a-f]{64}$ ]] || ! sha256sum --check --status <<<"$sum  $file"; then
        echo "$1 does not match its checksum in $3; it is not installed" >&2
        return 1
    fi
    mkdir "$1.d"
    case $file in
    *.tar.gz) tar --extract --gzip --file "$file" --directory "$1.d" ;;
    *.zip) unzip -q "$file" -d "$1.d" ;;
    *) mv "$file" "$1.d/$1" ;;
    esac
    # shellcheck disable=SC2206  # a pattern
    local members=("$1.d"/${4:-$1})
    install --mode 0755 --target-directory "${BIN:-/usr/local/bin}" "${members[@]}"
}

package() { # package=version repository distribution key fingerprint
    local keyring=/etc/apt/keyrings/microsoft.gpg
    get "$4" key.asc
    if [ "$(gpg --show-keys --with-colons key.asc | awk -F: '$1 == "pub" { key = 1 } $1 == "fpr" && key { print $10; key = 0 }')" != "$5" ]; then
        echo "$4 is not the key $5; ${1%%=*} is not installed" >&2
        return 1
    fi
    mkdir -p "${keyring%/*}"
    gpg --batch --yes --dearmor --output "$keyring" key.asc
    echo "deb [arch=amd64 signed-by=$keyring] $2 $3 main" >/etc/apt/sources.list.d/azure-cli.list
    # Ubuntu's own upgrades may hold the lock for minutes after a first boot.
    apt-get -o DPkg::Lock::Timeout=600 update
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install --yes --allow-downgrades "$1"
}
