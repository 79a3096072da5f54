#include "operate/run/replica_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "ground/base/fd.h"
#include "ground/base/number_from.h"
#include "ground/base/os_error.h"
#include "ground/net/token.h"
#include "ground/net/url.h"

namespace systole {
namespace {

constexpr std::size_t kMostOut = std::size_t{1} << 20, kLongestLine = std::size_t{16} << 10;

// What is there; nothing is waited for.
std::string read_some(int fd) {
  std::string text;
  std::array<char, 4096> piece;
  while (text.size() < kMostOut) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// The reading end of a pipe that holds the text, which is short, and has no writer any more.
Result<Fd> pipe_with(const std::string& text) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_error(errno, "make a pipe");
  Fd read(ends[0]);
  const Fd write(ends[1]);
  if (::write(write.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return os_error(errno, "write to a pipe");
  return read;
}

// Of a document of `systole … --json`.
std::optional<Error> error_in(const Node& document) {
  const Node* said = document.find("error");
  if (said == nullptr) return {};
  Error read{ErrorKind::internal, said->text_at("message"), {}, said->text_at("hint"), {}};
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::internal); ++kind)
    if (said->text_at("kind") == name_of(static_cast<ErrorKind>(kind))) read.kind = static_cast<ErrorKind>(kind);
  read.where = {said->text_at("file"), number_from<int>(said->text_at("line")).value_or(0),
                number_from<int>(said->text_at("col")).value_or(0)};
  read.key = said->text_at("key");
  return read;
}

}  // namespace

Result<ReplicaProcess> ReplicaProcess::start(std::vector<std::string> argv, const std::string& run) {
  const std::string token = TRY(RunToken::make()).hex();
  const Fd shown = TRY(pipe_with(token + "\n"));
  argv.insert(argv.end(),
              {"--port", "0", "--listen", "127.0.0.1", "--token-file", "/dev/stdin", "--balanced", "--json"});
  if (!run.empty()) argv.insert(argv.end(), {"--", run});
  Command command{.argv = std::move(argv)};
  command.in = ChildStream::to(shown.get());
  command.out = command.err = ChildStream::pipe();
  command.dies_with_parent = true;
  Process process = TRY(Process::start(command));
  ReplicaProcess replica(std::move(process), token);
  for (const int fd : {replica.process_.out(), replica.process_.err()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
  return replica;
}

void ReplicaProcess::read(const std::function<void(const std::string& line)>& line) {
  out_ += read_some(process_.out());
  take_lines(read_some(process_.err()), line);
  if (said_ || !out_.ends_with("}\n")) return;
  const Result<Node> document = parse_json(out_, "stdout");
  if (document.ok() && !document->text_at("url").empty()) said_ = *document;
}

void ReplicaProcess::take_lines(std::string_view text, const std::function<void(const std::string& line)>& line) {
  for (const char c : text) {
    if (c != '\n') line_ += c;
    if (c == '\n' || line_.size() >= kLongestLine) line(std::exchange(line_, {}));
  }
}

NetAddress ReplicaProcess::address() const {
  const UrlParts url(said_->text_at("url"));
  return {url.bare_host(), number_from<int>(std::string_view(url.port).substr(url.port.empty() ? 0 : 1)).value_or(0)};
}

Error ReplicaProcess::failure(const Exit& exit) const {
  if (const Result<Node> document = parse_json(out_, "stdout"); document.ok())
    if (std::optional<Error> said = error_in(*document)) return *std::move(said);
  return error(ErrorKind::io, "a replica ended before it served: {}", to_string(exit));
}

}  // namespace systole
