#include "operate/render/docker/docker.h"

namespace systole {

std::span<const std::string> runtime_packages() {
  static const std::vector<std::string> kPackages = {"libdnnl2",     "libfmt9",           "libgcc-s1",      "libgomp1",
                                                     "libpcre2-8-0", "libsentencepiece0", "libsqlite3-0",   "libssl3",
                                                     "libstdc++6",   "libxxhash0",        "libyaml-cpp0.7", "libzstd1",
                                                     "zlib1g"};
  return kPackages;
}

std::span<const std::string> late_libraries() {
  static const std::vector<std::string> kLate = {"libdnnl.so.2", "libsentencepiece.so.0", "libssl.so.3"};
  return kLate;
}

}  // namespace systole
