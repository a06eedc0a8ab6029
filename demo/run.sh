#!/bin/sh
# run.sh - the demonstration: two honest programs and a hostile one, each in a boundary of its own. Ends 0 when all went as it must.
set -eu
cd "$(dirname "$0")/.."

ledger=build/demo/ledger
log=build/demo/log
rm -rf build/demo
mkdir -p build/demo
mkdir -m 700 "$ledger"

fail() {
	echo "demo: $*" >&2
	exit 1
}

# Runs Caisson with these words, shows what comes, and leaves it in $log.
caisson_run() {
	build/caisson run --ledger "$ledger" --summary "$@" >"$log" 2>&1 || fail "exit status $?: $(cat "$log")"
	cat "$log"
	expect 'caisson: succeeded' 'boundary verified empty'
}

expect() {
	for text in "$@"; do
		grep -q "$text" "$log" || fail "this should have been said: $text"
	done
}

echo "(a) compile a C++ program and run it on a file, in one run"
caisson_run --memory 512M --wall 60s --input demo/primes.cc:/box/primes.cc --input demo/numbers.txt:/box/numbers.txt -- \
	sh -c 'c++ -O2 primes.cc -o primes && ./primes < numbers.txt'
expect '1000003 is prime' '91 is not prime'

echo
echo "(b) a Python script with a pool of processes"
caisson_run --wall 60s --input demo/pool.py:/box/pool.py -- python3 pool.py
expect 'sum of squares 332833500'

echo
echo "(c) a program that reads what is not its own, calls out, forks without end and stays behind"
marker="hostile-$$"
caisson_run --wall 60s --pids 32 --input demo/hostile.py:/box/hostile.py -- python3 hostile.py "$marker"
expect 'shadow: No such file' '192.0.2.1 by TCP: Network is unreachable' '127.0.0.1: Connection refused' \
	'netlink: Operation not permitted' 'fork without end: Resource temporarily unavailable' 'survivors killed: 3[12]'
if grep -ls "[h]${marker#h}" /proc/[0-9]*/cmdline; then # the brackets keep grep from finding itself
	fail "a process of the hostile program is still there"
fi
echo "no process of it is left on the host"

echo
echo "the ledger's own word:"
build/caisson list --ledger "$ledger"
build/caisson verify --ledger "$ledger" --all
