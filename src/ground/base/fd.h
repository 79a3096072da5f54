#pragma once
// A file descriptor that is closed with its owner. What close() would tell is lost: who must know closes what release()
// gives.

#include <unistd.h>

#include <utility>

namespace systole {

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}  // below 0: none
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
