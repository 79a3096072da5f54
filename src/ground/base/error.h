#pragma once
// One Error, two carriers: Result<T> (result.h) if failure is an ordinary outcome; Failure, an exception that holds the
// same Error, if the caller is wrong and Results would clutter the code. Library code never prints or exits; the
// command line derives the exit code from the kind.

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/error_code.h"

namespace systole {

// A kind tells the caller what to do next, so there are few.
enum class ErrorKind {
  invalid,       // the input is wrong: edit it
  not_found,     // a file, key or name is absent
  exists,        // it exists already and would be lost
  unsupported,   // valid, but no part of this build or machine can do it
  does_not_fit,  // needs more memory or space than the limit; nothing was started
  no_space,      // the disk is full
  io,            // the system refused a read or a write
  corrupt,       // wrong checksum or format
  busy,          // another process or thread holds it
  interrupted,   // asked to stop
  internal,      // our own bug
};

const char* name_of(ErrorKind kind);

// A place in a file, 1-based; line 0 means the file as a whole, an empty file means nowhere.
struct Where {
  std::string file;
  int line = 0;
  int col = 0;
  bool operator==(const Where&) const = default;
};

std::string to_string(const Where& where);  // "job.yaml:3:7", "job.yaml" or ""

struct Error {
  ErrorKind kind = ErrorKind::internal;
  std::string message;  // what and why, without a full stop
  Where where;
  std::string hint;           // the edit or command that fixes it; may be empty
  std::vector<Error> others;  // further errors of the same pass (all spec errors at once)
  ErrorCode code = ErrorCode::none;
  std::string key = {};  // dotted key of the document it is about: "train.batch"; may be empty

  Error&& at(Where w) && {
    where = std::move(w);
    return std::move(*this);
  }
  Error&& hinted(std::string h) && {
    hint = std::move(h);
    return std::move(*this);
  }
  Error&& coded(ErrorCode c) && {
    code = c;
    return std::move(*this);
  }
  Error&& about(std::string k) && {
    key = std::move(k);
    return std::move(*this);
  }
};

template <typename... Args>
Error error(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return Error{kind, fmt::format(format, std::forward<Args>(args)...), {}, {}, {}};
}

// An error about `key`; its message begins with the key.
// key_error(kind, "train.batch", "{} is no multiple of {}", 10, 4) says "train.batch: 10 is no multiple of 4".
template <typename... Args>
Error key_error(ErrorKind kind, std::string key, fmt::format_string<Args...> format, Args&&... args) {
  std::string message = fmt::format("{}: {}", key, fmt::format(format, std::forward<Args>(args)...));
  return Error{kind, std::move(message), {}, {}, {}, ErrorCode::none, std::move(key)};
}

// "job.yaml:3:3: error: unknown key 'modle'\n  hint: did you mean 'model'?", followed by each of `others`.
std::string to_string(const Error& error);

// An Error as an exception.
class Failure : public std::exception {
 public:
  explicit Failure(Error error);
  const Error& error() const { return error_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  Error error_;
  std::string text_;
};

[[noreturn]] void fail(Error error);

// CHECK(condition, "format", ...): if the condition is false, it is our own bug; throws Failure of kind internal.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace systole

#define CHECK(condition, ...)                                                              \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::systole::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
