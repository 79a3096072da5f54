#pragma once
// One Error, two carriers: Result<T> (result.h) where failing is an ordinary outcome, Failure (an exception
// holding the same Error) where the caller is wrong and plumbing would bury the code. Library code never
// prints or exits; the command line decides the exit code from the kind.

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace systole {

// Few kinds, chosen by what the caller would do next.
enum class ErrorKind {
  invalid,       // the input is wrong: edit it
  not_found,     // a file, key or name is absent
  exists,        // it is there already and would be lost
  unsupported,   // valid, but no part of this build or machine can do it
  does_not_fit,  // memory or space needed is more than the limit; nothing was started
  no_space,      // the disk is full
  io,            // the system refused a read or a write
  corrupt,       // a checksum or format does not hold
  busy,          // somebody else holds it
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
  std::vector<Error> others;  // further errors found in the same reading (all spec errors at once)

  Error&& at(Where w) && {
    where = std::move(w);
    return std::move(*this);
  }
  Error&& hinted(std::string h) && {
    hint = std::move(h);
    return std::move(*this);
  }
};

template <typename... Args>
Error error(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return Error{kind, fmt::format(format, std::forward<Args>(args)...), {}, {}, {}};
}

// "job.yaml:3:3: error: unknown key 'modle'\n  hint: did you mean 'model'?", and each of `others` after it.
std::string to_string(const Error& error);

// The exception form.
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

// CHECK(condition, "format", ...): our own bug when it does not hold; throws Failure of kind internal that says so.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

}  // namespace systole

#define CHECK(condition, ...)                                                              \
  do {                                                                                     \
    if (!(condition)) [[unlikely]]                                                         \
      ::systole::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
