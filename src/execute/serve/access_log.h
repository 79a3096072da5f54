#pragma once
// The access log of a server: a JSON object a line for each request, with the time of each of its parts.
//
//   {"time":"2026-01-01T00:00:00.000Z","id":"req_1","peer":"127.0.0.1","method":"POST","path":"/v1/completions",
//    "status":200,"bytes":312,"total_s":0.24,"parts_s":{"receive":0.0001,…},"model":"m","prompt_tokens":5,
//    "completion_tokens":16,"first_token_s":0.03}
//
// `gone` says that the client left before it had the answer; `failure`, what the handler threw. Prompts are there if the
// server was told so. Health checks and /metrics are left out if they are answered.
//
// The file is written on a thread of its own, so that no request waits for a disk. Lines that it cannot take (a full disk,
// a pipe that nobody reads) are lost and counted. It is opened to append and each line is one write, so that several
// processes may share it; if it has been renamed or removed, the next line begins another of its name. So rotation is
// `mv`, without a signal.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "ground/base/clock.h"
#include "ground/base/fd.h"
#include "ground/net/http_server.h"

namespace systole {

// Without an end of line; "" if it is not to be logged.
std::string access_line(const HttpAccess& access, const std::string& time);

class AccessLog {
 public:
  // "-": standard output. The clock must outlive the log. Errors: those of opening the file.
  static Result<std::unique_ptr<AccessLog>> open(const std::string& path, Clock& clock);
  ~AccessLog();  // what was given is written, unless that takes more than a second
  AccessLog(const AccessLog&) = delete;
  AccessLog& operator=(const AccessLog&) = delete;

  void add(const HttpAccess& access);  // never waits for the file. Thread-safe
  std::int64_t lost() const;           // lines
  std::string metrics(const std::string& model) const;

 private:
  AccessLog(std::string path, Fd fd, Clock& clock);
  void run();
  void follow_file();
  bool write(std::string_view line);
  bool wait_for_room() const;

  const std::string path_;
  Fd fd_;  // none: standard output. Of the thread, as the next
  bool is_torn_ = false;
  Clock& clock_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;  // guarded by mutex_, as what follows
  std::size_t bytes_ = 0;          // of lines_
  std::int64_t lost_ = 0;
  bool ends_ = false;
  std::chrono::steady_clock::time_point until_;  // with ends_
  std::thread thread_;                           // last: it uses the others
};

}  // namespace systole
