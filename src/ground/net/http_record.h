#pragma once
// Where the time of one request goes, by named part, and what its handler notes of it.
//
// A request is in exactly one part at each moment, from its first byte until its last left: to enter a part ends the one
// before, by one look at the clock. So the parts' times are measured, none is what the others leave, and their sum is the
// whole time. The server names the first and the last part; a handler names those in between as it likes.
//
// Thread safety: all of it. What comes after the end is ignored.

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/units.h"

namespace systole {

class HttpRecord {
 public:
  using Moment = std::chrono::steady_clock::time_point;
  struct Part {
    std::string_view name;
    std::chrono::nanoseconds time{};
  };
  static constexpr std::string_view kReceive = "receive";  // from the first byte to the last of the body
  static constexpr std::string_view kHandle = "handle";    // whatever a handler does without naming it
  static constexpr std::string_view kSend = "send";        // the answer is complete, and its last bytes leave

  explicit HttpRecord(Moment began) : began_(began), since_(began) {}

  void enter(std::string_view part);  // REQUIRES: the name is a literal
  void count(std::string_view name);  // one more of these; the same
  void mark(std::string_view name);   // now is this moment; a later one of the same name replaces it
  void note(std::string name, Node value);
  Moment end(Moment now);  // when it ended: now, or when its last part was entered, if that is later

  // Those that took part, in the order in which each was entered first.
  std::vector<Part> parts() const;
  std::int64_t counted(std::string_view name) const;
  std::optional<Seconds> marked(std::string_view name) const;  // since the request began
  std::vector<Node::Entry> notes() const;

 private:
  void leave(Moment now);

  const Moment began_;
  mutable std::mutex mutex_;  // guards what follows
  Moment since_;              // in the part
  std::string_view part_ = kReceive;
  bool ended_ = false;
  std::vector<Part> parts_;
  std::vector<std::pair<std::string_view, std::int64_t>> counts_;
  std::vector<std::pair<std::string_view, Moment>> marks_;
  std::vector<Node::Entry> notes_;
};

}  // namespace systole
