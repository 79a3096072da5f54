#include "operate/cli/inject.h"

#include <charconv>

#include "ground/base/quantity.h"

namespace systole::cli {
namespace {

struct Stall {
  std::string place;
  Seconds time;
  std::int64_t every = 1;
};

Result<Stall> parse_stall(std::string_view text) {
  const std::size_t equals = text.find('='), at = text.find('@');
  if (equals == text.npos) return error(ErrorKind::invalid, "--inject '{}' is not PLACE=TIME", text).hinted("--inject data=50ms, or data=50ms@10 for every tenth step");
  Stall stall;
  stall.place = std::string(text.substr(0, equals));
  stall.time = TRY(parse_seconds(text.substr(equals + 1, at == text.npos ? text.npos : at - equals - 1)));
  if (at != text.npos) {
    const std::string_view number = text.substr(at + 1);
    if (std::from_chars(number.data(), number.data() + number.size(), stall.every).ec != std::errc() || stall.every < 1) {
      return error(ErrorKind::invalid, "--inject: '{}' is no number of steps", number);
    }
  }
  return stall;
}

}  // namespace

Status inject(const std::string& text, Clock& clock, RunRequest& request) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const Stall stall = TRY(parse_stall(rest.substr(0, comma)));
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
    const auto hold = [stall, &clock](std::int64_t step) {
      if (step % stall.every == 0) clock.sleep(stall.time);
    };
    if (stall.place == "data") {
      request.before_batch = hold;
    } else if (stall.place == "compute") {
      request.hooks.in_compute = hold;
    } else if (stall.place == "logging") {
      request.hooks.in_logging = hold;
    } else if (stall.place == "checkpoint") {
      request.hooks.in_checkpoint = hold;
    } else {
      return error(ErrorKind::invalid, "--inject: no place is named '{}'", stall.place).hinted("data, compute, logging or checkpoint");
    }
  }
  return {};
}

}  // namespace systole::cli
