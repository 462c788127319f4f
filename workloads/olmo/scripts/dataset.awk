# Which data files of a training config are used, and the config with their local paths in place of their addresses.
# Usage: awk -v want=urls|config -v data=/data -v max=2 -v evaluate=1 -f dataset.awk CONFIG
#   want=urls    prints each file's address once, by https
#   want=config  prints the config
#   max          how many of the training's files are used; 0 for all
#   evaluate     whether the evaluations stay, and their files with them
/^[a-z_]+:/ {
  section = $1
  if (section == "evaluators:" && !evaluate && want == "config") print "evaluators: []"
}
section == "evaluators:" && !evaluate { next }
section ~ /^(evaluators|data):$/ && $1 == "-" && $2 ~ /^https?:\/\/olmo-data\.org\// {
  if (section == "data:" && max + 0 && ++count > max + 0) next
  path = $2
  sub(/^https?:\/\/olmo-data\.org/, "", path)
  if (want == "urls" && !seen[path]++) print "https://olmo-data.org" path
  if (want == "config") print substr($0, 1, index($0, "-")) " " data path
  next
}
want == "config" { print }
