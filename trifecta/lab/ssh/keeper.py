"""Who keeps order at the other end: a shell that lives as long as the connection, and removes all that was left.

It is told a line at a time and answers in lines. For what it is told while a trial runs it starts no program, so that
it takes nothing from one; the watch (below) does every 15 s, a `sleep` and a `rm`:

* ``beat``: the connection stands. Any other line says so, too.
* ``signal NAME SIGNAL``: to a program that was started in the working folder under this name.
* ``show ID FILE...``: what these files hold, each after a line ``== FILE``, then ``done ID``. A `cat` for each.
* ``used ID NAME``: the same of what the kernel counts of a program's threads.

At the end of its input it ends the programs and removes the folder. A connection that froze, or a link that is cut,
ends no input for hours: a watch beside it does the same when nothing was heard for a while, also when the keeper was
killed. A program is known by its working directory, so that nobody else is ended whose process has an old number.
"""

from __future__ import annotations

BEAT_S = 2.0
PATIENCE_S = 15
"""How often the watch looks: what is silent is ended after that time at the least, and twice it at most."""

KEEPER = r"""
umask 077
patience=$1
shift
end() {
  for again in 1 2 3; do # what is being started, or still writes, may come in behind the first
    [ -d "$1" ] || break
    for file in "$1"/*.pid; do
      read -r pid <"$file" && [ "/proc/$pid/cwd" -ef "$1" ] && kill -KILL "$pid"
    done
    rm -rf "$1"
  done
} 2>/dev/null
for old in "$@"; do case $old in */trifecta-*) end "$old" ;; esac; done
dir=$(mktemp -d "${TMPDIR:-/tmp}/trifecta-XXXXXXXXXX") || exit 3
cd "$dir" && : >alive || exit 3
keeper=$$
server=$PPID
born() { read -r line <"/proc/$server/stat" && set -- $line && birth=${22}; }
born
before=$birth
(
  # KILL: a child that is not yet `sleep` may lose a TERM with the trap it still has of its parent, and sleep on
  trap 'kill -KILL $!; wait $!; exit' TERM
  trap '' HUP INT
  while :; do
    sleep "$patience" &
    wait $! || continue
    rm "$dir/alive" && continue
    [ "/proc/$keeper/cwd" -ef "$dir" ] && kill -KILL "$keeper"
    end "$dir"
    birth=
    born
    read -r name <"/proc/$server/comm"
    case $name-$birth in sshd*-"$before") kill -KILL "$server" ;; esac
    exit
  done
) >/dev/null 2>&1 </dev/null &
watch=$!
leave() {
  trap '' HUP INT TERM
  kill "$watch" && wait "$watch"
  end "$dir"
  exit
} 2>/dev/null
trap leave HUP INT TERM
show() { for file in "$@"; do printf '== %s\n' "$file"; cat "$file"; done; } 2>/dev/null
printf 'connection %s\nready %s\n' "${SSH_CONNECTION:-}" "$dir"
while read -r word first rest; do
  : >"$dir/alive"
  case $word in
    signal) read -r pid <"$dir/$first.pid" && [ "/proc/$pid/cwd" -ef "$dir" ] && kill "-$rest" "$pid" ;;
    show) show $rest; printf '\ndone %s\n' "$first" ;;
    used) read -r pid <"$dir/$rest.pid" && show /proc/"$pid"/task/*/schedstat; printf '\ndone %s\n' "$first" ;;
  esac 2>/dev/null
done
leave
"""

START = r'umask 077; cd "$1" && echo $$ >"$2.pid" || exit 70; exec "$3" "$4" -'
"""Folder, name, engine, role: a program of the engine takes the place of the shell, and is the keeper's by its name."""

LOOK = r"""
digest=$1 lacking=
shift
for name; do command -v "$name" >/dev/null || lacking="$lacking $name"; done
[ -z "$lacking" ] || { echo "lacking$lacking"; exit 1; }
engine=${XDG_CACHE_HOME:-$HOME/.cache}/trifecta/engine/$digest/trifecta-engine
[ -f "$engine" ] && [ "$(sha256sum <"$engine")" = "$digest  -" ] || { echo absent; exit 1; }
printf 'engine %s\n' "$engine"
exec "$engine" --version
"""
"""Digest, and what is needed there: what of it is lacking, that the engine is absent, or where it lies and what it says
of itself. All in one command, since each costs a shell and whatever its user has it do first."""

BRING = r"""
umask 077
folder=${XDG_CACHE_HOME:-$HOME/.cache}/trifecta/engine/$1
mkdir -p "$folder" && draft=$(mktemp "$folder/.tmp-XXXXXXXXXX") || exit 3
trap 'rm -f "$draft"' EXIT HUP INT TERM
gzip -dc >"$draft" || exit 4
[ "$(sha256sum <"$draft")" = "$1  -" ] || { echo 'it came with another sha256' >&2; exit 5; }
chmod 700 "$draft" && mv -f "$draft" "$folder/trifecta-engine" || exit 6
trap - EXIT
printf %s "$folder/trifecta-engine"
"""
"""Digest, and the engine, packed, on standard input: where it lies now. Nothing is left of one that was cut short."""

PUT = r'umask 077; mkdir -p "$1/files" && tar -xf - -C "$1/files"'
GET = r'cd "$1/files" && tar -cf - -- "$2" && { [ -d "$2" ] || rm -f -- "$2"; }'
MAKE = r'umask 077; mkdir -p "$1/files/$2"'
NEEDED = ("sh", "cat", "chmod", "gzip", "mkdir", "mktemp", "mv", "rm", "sha256sum", "sleep", "tar")
RESOLVE = 'exec getent ahosts "$1"'
"""Name: its addresses by getaddrinfo(3), a line for each kind of socket; 2 where it has none."""


def parse_addresses(output: str) -> list[str]:
    """The answer to `RESOLVE`, each address once and without the scope of a link-local one."""
    first = (line.split()[0].partition("%")[0] for line in output.splitlines() if line.strip())
    return list(dict.fromkeys(first))
