#!/bin/sh
# libraries.sh FOLDER [PROGRAM]: copies what systole is linked with or loads later, but the C library, into a folder.
set -eu
program=${2:-/usr/bin/systole}
late="/usr/lib/x86_64-linux-gnu/libdnnl.so.2 /usr/lib/x86_64-linux-gnu/libevent_openssl-2.1.so.7 /usr/lib/x86_64-linux-gnu/libsentencepiece.so.0 /usr/lib/x86_64-linux-gnu/libssl.so.3"
mkdir -p "$1"
# shellcheck disable=SC2086
needs=$(ldd "$program" $late)
for file in $late $(printf '%s\n' "$needs" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u); do
  case ${file##*/} in
  libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | ld-linux*) ;; # the base has its own
  *) cp -L -- "$file" "$1" ;;
  esac
done
