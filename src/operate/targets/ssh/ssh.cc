#include "operate/targets/ssh/ssh.h"

#include <signal.h>

#include <algorithm>
#include <map>

#include "ground/base/nearest.h"
#include "operate/cluster/record.h"
#include "operate/render/quote.h"
#include "operate/targets/ssh/ssh_begin.h"
#include "operate/targets/ssh/ssh_host.h"
#include "operate/targets/ssh/ssh_link.h"

namespace systole {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

Result<std::vector<SshHost>> hosts_of(const Record& record) {
  const auto hosts = record.where.find("hosts");
  if (hosts == record.where.end()) return error(ErrorKind::corrupt, "the record of '{}' names no machines", record.run);
  return read_hosts(hosts->second);
}

Values values_of(const Record& record, const SshHost& host) {
  return {{"run", record.run}, {"name", host.name}, {"job", record.id}, {"program", record.program_sha256}};
}

// Asks each of its machines the same; answers are in their order.
std::vector<Result<std::string>> ask_all(HostCommand act, const Record& record, const std::vector<SshHost>& hosts) {
  std::vector<std::optional<Result<std::string>>> said(hosts.size());
  for_each_at_once(hosts.size(), [&](std::size_t i) {
    said[i].emplace(ask_host(hosts[i], script_of(act, values_of(record, hosts[i]))));
  });
  std::vector<Result<std::string>> answers;
  for (auto& one : said) answers.push_back(std::move(*one));
  return answers;
}

// The agents' logs: of the leader, which gets the output of all ranks, or of each machine.
class HostLogs : public Output {
 public:
  HostLogs(Record record, std::vector<SshHost> hosts)
      : record_(std::move(record)), hosts_(std::move(hosts)), at_(hosts_.size()) {}

  Result<std::vector<OutputPiece>> more() override {
    std::vector<std::optional<Error>> failed(hosts_.size());
    std::vector<std::string> read(hosts_.size());
    for_each_at_once(hosts_.size(), [&](std::size_t i) {
      Values values = values_of(record_, hosts_[i]);
      values.emplace_back("from", std::to_string(at_[i]));
      Result<std::string> text = ask_host(hosts_[i], script_of(HostCommand::read, values));
      if (text.ok()) {
        read[i] = std::move(*text);
      } else {
        failed[i] = text.error();
      }
    });
    for (std::size_t i = 0; i < hosts_.size(); ++i) {
      at_[i] += read[i].size();
      if (!read[i].empty()) waiting_.push_back({hosts_[i].name, std::move(read[i])});
    }
    for (const std::optional<Error>& one : failed)
      if (one) return *one;
    return std::exchange(waiting_, {});
  }
  Seconds pace() const override { return Seconds(1.0); }

 private:
  Record record_;
  std::vector<SshHost> hosts_;
  std::vector<std::size_t> at_;
  std::vector<OutputPiece> waiting_;  // already read, until all machines could be read
};

// What machines hold, with one query per machine for all its runs.
class HostStatuses {
 public:
  // Errors: as hosts_of.
  static Result<HostStatuses> ask(std::span<const Record> records) {
    HostStatuses statuses;
    for (const Record& record : records)
      for (const SshHost& host : TRY(hosts_of(record))) statuses.told_.try_emplace(host);
    std::vector<std::pair<const SshHost*, Told*>> all;
    for (auto& [host, told] : statuses.told_) all.emplace_back(&host, &told);
    const std::string run = records.size() == 1 ? records[0].run : "";
    for_each_at_once(all.size(), [&](std::size_t i) {
      const auto& [host, told] = all[i];
      const auto ask_it = [&, host = host]() -> Result<std::vector<HostRun>> {
        return read_host_runs(
            TRY(ask_host(*host, script_of(HostCommand::query, {{"run", run}, {"name", host->name}}))));
      };
      Result<std::vector<HostRun>> runs = ask_it();
      if (runs.ok()) {
        told->runs = std::move(*runs);
      } else {
        told->failed = runs.error();
      }
    });
    return statuses;
  }
  HostAnswer of(const SshHost& host, const std::string& run) const {
    const Told& told = told_.at(host);
    HostAnswer answer{.host = host};
    if (told.failed) answer.failed = &*told.failed;
    const auto found = std::ranges::find(told.runs, run, &HostRun::run);
    if (found != told.runs.end()) answer.run = &*found;
    return answer;
  }

 private:
  struct Told {
    std::vector<HostRun> runs;
    std::optional<Error> failed;
  };
  std::map<SshHost, Told> told_;
};

class Ssh : public ClusterClient {
 public:
  const char* name() const override { return "ssh"; }

  Result<std::string> send(const Record& record) override { return begin_on_hosts(record, TRY(hosts_of(record))); }

  Result<std::vector<JobStatus>> query(std::span<const Record> records) override {
    const HostStatuses all = TRY(HostStatuses::ask(records));
    std::vector<JobStatus> jobs;
    for (const Record& record : records) {
      std::vector<HostAnswer> answers;
      for (const SshHost& host : TRY(hosts_of(record))) answers.push_back(all.of(host, record.run));
      if (answers[0].failed != nullptr) {
        if (record.id.empty()) return *answers[0].failed;  // unknown whether there is one
        jobs.push_back({.id = record.id, .run = record.run, .submission = record.submission});
        jobs.back().reason = answers[0].failed->message;
        jobs.back().answered = false;
        continue;
      }
      if (answers[0].run == nullptr) continue;
      jobs.push_back(status_of(answers));
    }
    return jobs;
  }

  Result<std::unique_ptr<Output>> output(const Record& record, bool all) override {
    std::vector<SshHost> hosts = TRY(hosts_of(record));
    if (!all) hosts.resize(1);
    return std::unique_ptr<Output>(std::make_unique<HostLogs>(record, std::move(hosts)));
  }

  // The leader's agent ends the others' ranks.
  Status stop(const Record& record, bool now) override {
    const std::vector<SshHost> hosts = TRY(hosts_of(record));
    const auto said = ask_all(now ? HostCommand::kill : HostCommand::stop, record, hosts);
    return said[0].ok() ? Status() : Status(said[0].error());
  }

  Result<std::vector<std::string>> inside(const Record& record, const JobStatus&, const std::string& node,
                                          std::span<const std::string> command) override {
    const std::vector<SshHost> hosts = TRY(hosts_of(record));
    const auto host = node.empty() ? hosts.begin() : std::ranges::find(hosts, node, &SshHost::name);
    if (host == hosts.end()) {
      std::vector<std::string> names;
      for (const SshHost& one : hosts) names.push_back(one.name);
      return error(ErrorKind::not_found, "'{}' is no machine of the run '{}'", node, record.run)
          .hinted(nearest_hint(node, names));
    }
    std::string line = "cd && cd -- " + shell_word(record.folder) + " && exec";
    line += command.empty() ? " \"${SHELL:-sh}\" -l" : " " + shell_line(command);
    return ssh_words(*host, command.empty(), "exec sh -c " + shell_word(line));
  }

  Status bring(const Record& record, const std::string& folder, const std::string& into) override {
    const SshHost host = TRY(hosts_of(record))[0];
    constexpr int kNoFolder = 9;
    constexpr Seconds kToEnd{2.0};
    Command packs;
    packs.argv = ssh_words(host, false,
                           "exec sh -c " + shell_word(fmt::format("cd && cd -- {} || exit {}; exec tar -cf - .",
                                                                  shell_word(folder), kNoFolder)));
    packs.in = ChildStream::null();
    packs.out = ChildStream::pipe();
    Process packing = TRY(Process::start(packs));
    Command unpacks;
    unpacks.argv = {"tar", "-C", into, "--no-same-owner", "--no-same-permissions", "-xf", "-"};
    unpacks.in = ChildStream::to(packing.out());
    Process unpacking = TRY(Process::start(unpacks));
    const Exit unpacked = unpacking.wait();
    // If unpacking failed, the packer blocks forever on a pipe that this process holds open, so bound the wait.
    std::optional<Exit> packed = unpacked.ok() ? packing.wait() : packing.wait(kToEnd);
    if (packed && packed->code == kNoFolder)
      return error(ErrorKind::not_found, "{} has no folder '{}'", host.name, folder).hinted("the run wrote none");
    if (!packed) TRY(packing.signal_group(SIGKILL));
    if (packed && !packed->ok())  // then the unpacked files are truncated
      return error(ErrorKind::io, "{}: '{}' came in part: {}", host.name, folder, to_string(*packed));
    if (!unpacked.ok()) return error(ErrorKind::io, "cannot write into '{}': {}", into, to_string(unpacked));
    return {};
  }
  bool shares_folders() const override { return false; }

  Status purge(const Record& record) override {
    const std::vector<SshHost> hosts = TRY(hosts_of(record));
    for (const Result<std::string>& said : ask_all(HostCommand::purge, record, hosts))
      if (!said.ok()) return said.error();
    return {};
  }
};

}  // namespace

Result<std::unique_ptr<ClusterClient>> open_ssh() {
  for (const char* program : {"ssh", "tar"})
    if (!find_program(program).ok())
      return error(ErrorKind::not_found, "there is no '{}' here", program)
          .hinted(fmt::format("apt-get install {}", std::string(program) == "ssh" ? "openssh-client" : "tar"));
  return std::unique_ptr<ClusterClient>(std::make_unique<Ssh>());
}

}  // namespace systole
