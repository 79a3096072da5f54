#include "operate/targets/ssh/ssh_begin.h"

#include <filesystem>

#include "ground/base/errors.h"
#include "ground/net/token.h"
#include "operate/targets/ssh/ssh_host.h"
#include "operate/targets/ssh/ssh_link.h"

namespace systole {
namespace {

// Limited by the machines' disks: a program has a few hundred MB.
constexpr Seconds kCopyPatience{300.0};

Error refused(ErrorKind kind, const SshHost& host, const std::string& why) {
  return error(kind, "{}: {}", host.name, why);
}

// A connection that fails before the run has begun leaves nothing behind.
Error not_begun(Error why) {
  if (why.kind == ErrorKind::io) why.kind = ErrorKind::unsupported;
  return why;
}

class Gang {
 public:
  Gang(const Record& record, const std::vector<SshHost>& hosts)
      : record_(record), hosts_(hosts), sessions_(hosts.size()), answers_(hosts.size()) {}

  Status connect(const std::vector<std::pair<std::string, std::string>>& values) {
    TRY(on_each([&](std::size_t i) -> Status {
      auto own = values;
      own.emplace_back("name", hosts_[i].name);
      sessions_[i].emplace(TRY(HostSession::open(hosts_[i], script_of(HostCommand::begin, own))));
      answers_[i] = TRY(sessions_[i]->hear());
      if (answers_[i] == "busy")
        return refused(ErrorKind::busy, hosts_[i], fmt::format("another one submits '{}' at this moment", record_.run));
      return agreed(i);
    }));
    if (answers_[0].starts_with("runs "))
      return refused(ErrorKind::busy, hosts_[0],
                     fmt::format("'{}' runs there already, as job {}", record_.run,
                                 answers_[0].substr(answers_[0].rfind(' ') + 1)))
          .hinted("another name: --run; or go on where it was submitted from");
    // The leader has no such run: running followers are left from an interrupted submission.
    return on_each([&](std::size_t i) -> Status {
      if (!answers_[i].starts_with("runs ")) return {};
      answers_[i] = TRY(sessions_[i]->ask("end"));
      return agreed(i);
    });
  }

  Status bring_program() {
    std::error_code failed;
    const auto size = static_cast<std::int64_t>(std::filesystem::file_size(record_.program, failed));
    if (failed) return error(ErrorKind::not_found, "cannot read the program '{}'", record_.program);
    TRY(on_each([&](std::size_t i) -> Status {
      answers_[i] = TRY(sessions_[i]->ask(fmt::format("room {}", size), kCopyPatience));
      if (!answers_[i].starts_with("full ")) return agreed(i);
      const std::size_t space = answers_[i].find(' ', 5);
      return refused(ErrorKind::no_space, hosts_[i],
                     fmt::format("{} MiB are free where the run goes, and it takes {}", answers_[i].substr(space + 1),
                                 answers_[i].substr(5, space - 5)))
          .hinted("make room there");
    }));
    return on_each([&](std::size_t i) -> Status {
      if (answers_[i] != "wants") return {};
      TRY(sessions_[i]->say(fmt::format("program {}\n", size)));
      TRY(sessions_[i]->send_file(record_.program));
      answers_[i] = TRY(sessions_[i]->hear(kCopyPatience));
      return agreed(i);
    });
  }

  Status bring_files(const std::string& token) {
    const std::string files = TRY(packed());
    return on_each([&](std::size_t i) -> Status {
      TRY(sessions_[i]->say(fmt::format("files {}\n{}\n", files.size(), token)));
      TRY(sessions_[i]->say(files));
      answers_[i] = TRY(sessions_[i]->hear());
      return agreed(i);
    });
  }

  // Checks that all machines see a file that the first one writes.
  Status share_the_folder() {
    TRY(first("mark"));
    const Status all = on_each([&](std::size_t i) -> Status {
      answers_[i] = TRY(sessions_[i]->ask("marked"));
      if (answers_[i] != "unseen") return agreed(i);
      return refused(ErrorKind::invalid, hosts_[i],
                     fmt::format("it does not see the folder of {}, {}: a model's ranks share one", hosts_[0].name,
                                 record_.folder))
          .hinted("folder: one that all machines mount");
    });
    TRY(first("unmark"));
    return all;
  }

  Status start_followers() {
    return on_each([&](std::size_t i) -> Status {
      if (i == 0) return {};
      answers_[i] = TRY(sessions_[i]->ask("start"));
      return agreed(i);
    });
  }
  // If the connection breaks now, it is unknown whether it leads; the error is io.
  Status start_leader() { return first("start"); }

  void take_back() {
    for_each_at_once(hosts_.size(), [&](std::size_t i) {
      if (sessions_[i]) (void)sessions_[i]->ask("undo");  // a disconnected one ends by itself
    });
  }

 private:
  Status first(const char* word) {
    answers_[0] = TRY(sessions_[0]->ask(word));
    return agreed(0);
  }
  Status agreed(std::size_t i) const {
    if (!answers_[i].starts_with("no ")) return {};
    return refused(ErrorKind::unsupported, hosts_[i], answers_[i].substr(3));
  }
  // The error of the first machine that has one; the others are in its `others`.
  Status on_each(const std::function<Status(std::size_t)>& act) {
    std::vector<Status> done(hosts_.size());
    for_each_at_once(hosts_.size(), [&](std::size_t i) { done[i] = act(i); });
    std::vector<Error> failed;
    for (const Status& one : done)
      if (!one.ok()) failed.push_back(one.error());
    return failed.empty() ? Status() : together(std::move(failed));
  }
  Result<std::string> packed() const {
    Command command;
    command.argv = {"tar",      "-C",      record_.place + "/files", "--owner=0", "--group=0", "-cf", "-", "--",
                    "start.sh", "host.sh", "workload.yaml"};
    if (!record_.plan_sha256.empty()) command.argv.emplace_back("plan.json");
    CaptureOptions options;
    options.limit = Bytes(std::int64_t{256} << 20);
    Captured tar = TRY(run_captured(std::move(command), options));
    if (!tar.exit.ok()) return error(ErrorKind::not_found, "cannot pack the run's files: {}", tar.err);
    return std::move(tar.out);
  }

  const Record& record_;
  const std::vector<SshHost>& hosts_;
  std::vector<std::optional<HostSession>> sessions_;
  std::vector<std::string> answers_;
};

}  // namespace

Result<std::string> begin_on_hosts(const Record& record, const std::vector<SshHost>& hosts) {
  const std::string job = record.submission.substr(0, 8);
  const std::string token = TRY(RunToken::make()).hex();
  const int port = 20000 + static_cast<int>(std::stoul(record.submission.substr(8, 4), nullptr, 16) % 12000);
  Gang gang(record, hosts);
  const auto prepared = [&]() -> Status {
    TRY(gang.connect({{"run", record.run},
                      {"submission", record.submission},
                      {"job", job},
                      {"workload", record.workload_sha256},
                      {"program", record.program_sha256},
                      {"folder", record.folder},
                      {"leader", hosts[0].name},
                      {"port", std::to_string(port)},
                      {"nodes", std::to_string(hosts.size())}}));
    TRY(gang.bring_program());
    TRY(gang.bring_files(token));
    const auto shared = record.where.find("shared");
    if (hosts.size() > 1 && shared != record.where.end() && shared->second == "yes") TRY(gang.share_the_folder());
    return gang.start_followers();
  };
  if (Status done = prepared(); !done.ok()) {
    gang.take_back();
    return not_begun(std::move(done).error());
  }
  if (Status led = gang.start_leader(); !led.ok()) {
    if (led.error().kind != ErrorKind::io) gang.take_back();
    return std::move(led).error();
  }
  return job;
}

}  // namespace systole
