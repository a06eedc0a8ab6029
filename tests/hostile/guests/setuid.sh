#!/bin/sh
# setuid.sh - H17: runs a setuid program of the root file system. The dynamic loader shows the auxiliary vector only to a program
# that gained nothing.
found=none
for program in /usr/bin/su /usr/bin/passwd /usr/bin/mount; do
	if [ -u "$program" ]; then
		found=$program
		break
	fi
done
echo "found=$found"
LD_SHOW_AUXV=1 "$found" --help 2>&1 | sed -n 's/^AT_\(UID\|EUID\|SECURE\): *\([0-9]*\).*/\1=\2/p'
sed -n 's/^NoNewPrivs:\s*/no_new_privs=/p' /proc/self/status
