# Lists the data files of a training config, or prints the config with their local paths instead of their addresses.
# Usage: LC_ALL=C awk -v want=urls|config -v data=/data -v max=2 -v evaluate=1 -f dataset.awk CONFIG
#   want=urls    prints each file's https address once
#   want=config  prints the config
#   max          number of the training's files to use; 0 for all
#   evaluate     whether to keep the evaluations and their files
# Reads block and flow lists, quotes, comments, anchors, Windows line ends and a byte-order mark.
# Exit code: 1 if entries cannot be copied; standard error has their lines.

function refuse(what) {
  sub(/^[ \t]+/, "", what)
  if (++refused <= 5) wrong = wrong FILENAME ":" NR ": " what "\n"
}

# Returns the local path of a list's entry, or nothing for an unused file.
function path_of(entry,    bare, path) {
  bare = entry
  gsub(/^["']|["']$/, "", bare)
  if (bare ~ /^[A-Za-z0-9_-]*$/) return entry # not a file
  if (section == "data" && max + 0 && ++count > max + 0) return ""
  path = bare
  if (!sub(/^(https?:\/\/olmo-data\.org|s3:\/\/ai2-llm)\//, "/", path) || path ~ /\.\.|\/$|[^A-Za-z0-9._\/=+%-]/) {
    refuse(bare)
    return entry
  }
  if (!seen[path]++) urls = urls "https://olmo-data.org" path "\n"
  return data path
}

# Returns the text of a flow list or mapping, which may continue in the next line: `open` has its brackets.
function flow(text,    out, word, path) {
  while (match(text, /^("[^"]*"|'[^']*'|[^][{},"']+|.)/)) {
    word = substr(text, 1, RLENGTH)
    text = substr(text, RLENGTH + 1)
    if (word ~ /^[[{]$/) open = open word
    else if (word ~ /^[]}]$/) open = substr(open, 1, length(open) - 1)
    else if (word !~ /^[, ]*$/ && open ~ /\[$/) {
      match(word, /[^ ].*[^ ]|[^ ]/)
      path = path_of(substr(word, RSTART, RLENGTH))
      dropped = path == ""
      word = path == "" ? "" : substr(word, 1, RSTART - 1) path substr(word, RSTART + RLENGTH)
    }
    if (word == "[") count = 0
    if (word == "]") dropped = 0
    if (word == "," && dropped) dropped = 0
    else out = out word
  }
  return out
}

NR == 1 {
  if (substr($0, 1, 3) == "\357\273\277") $0 = substr($0, 4)
  if ($0 ~ /^(\377\376|\376\377)/) {
    refused = 1
    wrong = FILENAME ":1: UTF-16 instead of UTF-8: iconv -f UTF-16 -t UTF-8\n"
    exit
  }
}
{ sub(/\r$/, "") }
/^["']?[A-Za-z_]/ && open == "" {
  section = $0
  gsub(/["']|[ ]*:.*$/, "", section)
  if (section == "evaluators" && !evaluate) text = text "evaluators: []\n"
}
section == "evaluators" && !evaluate { next }
section !~ /^(evaluators|data)$/ {
  text = text $0 "\n"
  next
}
{
  sub(/(^|[ \t])#.*$/, "")
  line = ""
  entry = 0
  while (open == "" && match($0, /^ *(-|[A-Za-z_0-9."'-]+ *:|[&!][^ ]*)( +|$)/)) {
    word = substr($0, 1, RLENGTH)
    if (word ~ /: *$/) entry = count = 0
    if (word ~ /^ *- *$/) entry = 1
    line = line word
    $0 = substr($0, RLENGTH + 1)
  }
  sub(/[ \t]+$/, "")
  if (open != "" || /^ *[[{]/) line = line flow($0)
  else if ((entry || /^\*/) && $0 != "") {
    word = path_of($0)
    if (word == "") next
    line = line word
  } else {
    if (/:\/\/|\.npy/) refuse($0 " (not an entry of a list)")
    line = line $0
  }
  text = text line "\n"
}
END {
  if (refused) {
    if (refused > 5) wrong = wrong "and " refused - 5 " more\n"
    print wrong "allowed: data of https://olmo-data.org/ and s3://ai2-llm/" > "/dev/stderr"
    exit 1
  }
  ORS = ""
  print want == "urls" ? urls : text
}
