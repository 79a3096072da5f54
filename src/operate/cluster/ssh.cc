#include "operate/cluster/ssh.h"

#include <signal.h>

#include <algorithm>
#include <map>

#include "ground/base/nearest.h"
#include "operate/cluster/ledger.h"
#include "operate/cluster/record.h"
#include "operate/cluster/ssh_begin.h"
#include "operate/cluster/ssh_host.h"
#include "operate/cluster/ssh_link.h"
#include "operate/render/quote.h"

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

// The same for each of its machines; answers in their order.
std::vector<Result<std::string>> ask_all(HostAct act, const Record& record, const std::vector<SshHost>& hosts) {
  std::vector<std::optional<Result<std::string>>> said(hosts.size());
  for_each_at_once(hosts.size(), [&](std::size_t i) {
    said[i].emplace(ask_host(hosts[i], script_of(act, values_of(record, hosts[i]))));
  });
  std::vector<Result<std::string>> answers;
  for (auto& one : said) answers.push_back(std::move(*one));
  return answers;
}

// What the agents wrote: of the machine that leads, which hears what the ranks of all say, or of each.
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
      Result<std::string> text = ask_host(hosts_[i], script_of(HostAct::read, values));
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
  std::vector<OutputPiece> waiting_;  // of those that could be read, for when all can
};

// All that machines hold, each asked once for all of its runs.
class HostsSeen {
 public:
  // Errors: as hosts_of.
  static Result<HostsSeen> ask(std::span<const Record> records) {
    HostsSeen seen;
    for (const Record& record : records)
      for (const SshHost& host : TRY(hosts_of(record))) seen.told_.try_emplace(host);
    std::vector<std::pair<const SshHost*, Told*>> all;
    for (auto& [host, told] : seen.told_) all.emplace_back(&host, &told);
    const std::string run = records.size() == 1 ? records[0].run : "";
    for_each_at_once(all.size(), [&](std::size_t i) {
      const auto& [host, told] = all[i];
      const auto look = [&, host = host]() -> Result<std::vector<HostRun>> {
        return read_host_runs(TRY(ask_host(*host, script_of(HostAct::look, {{"run", run}, {"name", host->name}}))));
      };
      Result<std::vector<HostRun>> runs = look();
      if (runs.ok()) {
        told->runs = std::move(*runs);
      } else {
        told->failed = runs.error();
      }
    });
    return seen;
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

  Result<std::string> send(const Record& record) override {
    if (!record.after.empty())
      return error(ErrorKind::unsupported, "--after: nothing on plain machines waits for another job")
          .hinted("systole logs -f waits for one, and ends with its exit code");
    return begin_on_hosts(record, TRY(hosts_of(record)));
  }

  Result<std::vector<Seen>> look(std::span<const Record> records) override {
    const HostsSeen all = TRY(HostsSeen::ask(records));
    std::vector<Seen> jobs;
    for (const Record& record : records) {
      std::vector<HostAnswer> answers;
      for (const SshHost& host : TRY(hosts_of(record))) answers.push_back(all.of(host, record.run));
      if (answers[0].failed != nullptr) {
        if (record.id.empty()) return *answers[0].failed;  // whether there is one is not known
        jobs.push_back({.id = record.id, .run = record.run, .submission = record.submission});
        jobs.back().reason = answers[0].failed->message;
        jobs.back().answered = false;
        continue;
      }
      if (answers[0].run == nullptr) continue;
      if (answers[0].run->submission == record.submission)
        TRY(add_to_ledger(ledger_of(record), answers[0].run->ledger));
      jobs.push_back(seen_by(answers));
    }
    return jobs;
  }

  Result<std::unique_ptr<Output>> output(const Record& record, bool all) override {
    std::vector<SshHost> hosts = TRY(hosts_of(record));
    if (!all) hosts.resize(1);
    return std::unique_ptr<Output>(std::make_unique<HostLogs>(record, std::move(hosts)));
  }

  // The first one's agent ends those of the others.
  Status stop(const Record& record, bool now) override {
    const std::vector<SshHost> hosts = TRY(hosts_of(record));
    const auto said = ask_all(now ? HostAct::kill : HostAct::stop, record, hosts);
    return said[0].ok() ? Status() : Status(said[0].error());
  }

  Result<std::vector<std::string>> inside(const Record& record, const Seen&, const std::string& node,
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
    if (command.empty()) line += " \"${SHELL:-sh}\" -l";
    for (const std::string& word : command) line += " " + shell_word(word);
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
    // Whoever still packs, though nobody unpacks, waits for ever for room in a pipe that this process holds open.
    std::optional<Exit> packed = unpacked.ok() ? packing.wait() : packing.wait(kToEnd);
    if (packed && packed->code == kNoFolder)
      return error(ErrorKind::not_found, "{} has no folder '{}'", host.name, folder).hinted("the run wrote none");
    if (!packed) TRY(packing.signal_group(SIGKILL));
    if (packed && !packed->ok())  // then what is unpacked is cut
      return error(ErrorKind::io, "{}: '{}' came in part: {}", host.name, folder, to_string(*packed));
    if (!unpacked.ok()) return error(ErrorKind::io, "cannot write into '{}': {}", into, to_string(unpacked));
    return {};
  }
  bool shares_folders() const override { return false; }

  Status purge(const Record& record) override {
    const std::vector<SshHost> hosts = TRY(hosts_of(record));
    for (const Result<std::string>& said : ask_all(HostAct::purge, record, hosts))
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
