# shellcheck shell=bash
# Operations of the blob service (REST, such as "Put Block From URL") for copying.
# Reads: UPLOAD (folder with `url` of the container, and `sas`), STAGING (folder for temporary files), and scratch (prefix of the
# temporary files of the script that sources this one).
# shellcheck disable=SC2154

VERSION=2021-08-06 # of the REST interface: allows large blocks from a URL
STOP_XARGS=255     # exit code that stops xargs
CURL=(curl --silent --show-error --connect-timeout 30 --retry 5 --retry-all-errors)

refused() {
  echo "The SAS in the upload secret cannot $1 (HTTP $2): it has expired or lacks a permission (it needs rcwl)." >&2
  exit "$STOP_XARGS"
}

# blob QUERY PATH [curl options]: prints the HTTP status; writes headers to $scratch.headers and the answer to $scratch.body.
# Passes the SAS by standard input, because the process list shows arguments, and reads it each time, because it is rotated.
blob() {
  local query=$1 path=$2 address
  shift 2
  address="$(<"$UPLOAD/url")/$path?$query${query:+&}$(<"$UPLOAD/sas")"
  "${CURL[@]}" --config - --header "x-ms-version: $VERSION" --dump-header "$scratch.headers" --output "$scratch.body" \
    --write-out '%{http_code}' "$@" <<<"url = \"$address\""
}

# header NAME FILE: prints the header's value in the last answer; the file also has the headers of redirections.
header() {
  awk -v name="$1:" 'tolower($1) == name { value = $2 } END { sub(/\r$/, "", value); print value }' "$2"
}

# Prints the bytes of a blob, or nothing if it does not exist.
blob_bytes() {
  local status
  status=$(blob '' "$1" --head)
  case $status in
    200) header content-length "$scratch.headers" ;;
    404) ;;
    401 | 403) refused "read blobs" "$status" ;;
    *) echo "HEAD of $1 returned HTTP $status" >&2 && return 1 ;;
  esac
}

# Prints the blocks of an earlier try; the service keeps them for a week.
staged_blocks() {
  local status
  status=$(blob 'comp=blocklist&blocklisttype=uncommitted' "$1")
  [[ $status != 200 ]] || grep -o '<Name>[^<]*' "$scratch.body" | cut -d '>' -f 2 || true
}

# stage_block PATH ID URL FIRST LAST: makes a block of the bytes FIRST to LAST of the file at URL. The service fetches them itself.
# If it cannot reach the source, this pod copies them.
stage_block() {
  local path=$1 id=$2 url=$3 range="$4-$5" status
  if [[ ! -e $STAGING/through-this-pod ]]; then
    status=$(blob "comp=block&blockid=$id" "$path" --request PUT --header 'Content-Length: 0' \
      --header "x-ms-copy-source: $url" --header "x-ms-source-range: bytes=$range")
    [[ $status != 201 ]] || return 0
    echo "The blob service cannot fetch from the source (HTTP $status): the data goes through this pod." >&2
    touch "$STAGING/through-this-pod"
  fi
  "${CURL[@]}" --fail --location --range "$range" --output "$scratch.block" "$url"
  [[ $(stat -c %s "$scratch.block") == $(($5 - $4 + 1)) ]] || { echo "$url: bytes $range are incomplete" >&2 && return 1; }
  status=$(blob "comp=block&blockid=$id" "$path" --upload-file "$scratch.block")
  rm -f "$scratch.block"
  accepted "$status" "write blocks of $path"
}

# commit PATH ID...: makes the blob of these blocks, in this order.
commit() {
  local path=$1
  shift
  {
    printf '<?xml version="1.0" encoding="utf-8"?><BlockList>'
    (($# == 0)) || printf '<Latest>%s</Latest>' "$@"
    printf '</BlockList>'
  } >"$scratch.list"
  accepted "$(blob comp=blocklist "$path" --upload-file "$scratch.list")" "write $path"
}

# put FILE PATH: uploads a small blob.
put() {
  accepted "$(blob '' "$2" --upload-file "$1" --header 'x-ms-blob-type: BlockBlob')" "write $2"
}

accepted() {
  case $1 in
    201) ;;
    401 | 403) refused "$2" "$1" ;;
    *) echo "The blob service did not $2: HTTP $1" >&2 && return 1 ;;
  esac
}
