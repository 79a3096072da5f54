#pragma once
// For tests: as long as it lives, this process can open no file and no socket; those that are open go on.

#include <sys/resource.h>
#include <unistd.h>

#include "ground/base/result.h"

namespace systole {

class NoFreeDescriptor {
 public:
  NoFreeDescriptor() {
    const int lowest = ::dup(STDERR_FILENO);  // all below it are taken
    CHECK(lowest >= 0 && ::getrlimit(RLIMIT_NOFILE, &before_) == 0, "the limit of open files is not known");
    ::close(lowest);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(lowest);
    CHECK(::setrlimit(RLIMIT_NOFILE, &none) == 0, "the limit of open files cannot be lowered");
  }
  ~NoFreeDescriptor() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoFreeDescriptor(const NoFreeDescriptor&) = delete;
  NoFreeDescriptor& operator=(const NoFreeDescriptor&) = delete;

 private:
  rlimit before_{};
};

}  // namespace systole
