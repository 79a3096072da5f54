#include "ground/base/error.h"

namespace systole {

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid: return "invalid";
    case ErrorKind::not_found: return "not_found";
    case ErrorKind::exists: return "exists";
    case ErrorKind::unsupported: return "unsupported";
    case ErrorKind::does_not_fit: return "does_not_fit";
    case ErrorKind::no_space: return "no_space";
    case ErrorKind::io: return "io";
    case ErrorKind::corrupt: return "corrupt";
    case ErrorKind::busy: return "busy";
    case ErrorKind::interrupted: return "interrupted";
    case ErrorKind::internal: return "internal";
  }
  return "unknown";
}

std::string to_string(const Where& where) {
  if (where.file.empty() || where.line == 0) return where.file;
  if (where.col == 0) return fmt::format("{}:{}", where.file, where.line);
  return fmt::format("{}:{}:{}", where.file, where.line, where.col);
}

std::string to_string(const Error& error) {
  std::string text;
  if (std::string place = to_string(error.where); !place.empty()) text += place + ": ";
  text += "error: " + error.message;
  if (error.kind == ErrorKind::internal) text += " (a bug in Systole; please report it)";
  if (!error.hint.empty()) text += "\n  hint: " + error.hint;
  for (const Error& other : error.others) text += "\n" + to_string(other);
  return text;
}

Failure::Failure(Error error) : error_(std::move(error)), text_(to_string(error_)) {}

void fail(Error error) { throw Failure(std::move(error)); }

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  fail(Error{
      ErrorKind::internal, fmt::format("{}:{}: {} does not hold: {}", file, line, condition, message), {}, {}, {}});
}

}  // namespace systole
