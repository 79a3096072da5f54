#include "operate/targets/docker/docker.h"

namespace systole {

std::span<const std::string> runtime_packages() {
  static const std::vector<std::string> kPackages = {
      "libdnnl2",   "libevent-core-2.1-7", "libevent-openssl-2.1-7", "libfmt9",      "libgcc-s1",
      "libgomp1",   "libpcre2-8-0",        "libsentencepiece0",      "libsqlite3-0", "libssl3",
      "libstdc++6", "libxxhash0",          "libyaml-cpp0.7",         "libzstd1",     "zlib1g"};
  return kPackages;
}

std::span<const std::string> late_libraries() {
  static const std::vector<std::string> kLate = {"libdnnl.so.2", "libevent_openssl-2.1.so.7", "libsentencepiece.so.0",
                                                 "libssl.so.3"};
  return kLate;
}

}  // namespace systole
