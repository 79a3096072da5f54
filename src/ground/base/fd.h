#pragma once
// Owner of a file descriptor; closes it on destruction. That discards the result of close(); to check it, close what
// release() returns.

#include <unistd.h>

#include <utility>

namespace systole {

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}  // negative: none
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace systole
