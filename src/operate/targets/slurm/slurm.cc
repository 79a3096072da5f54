#include "operate/targets/slurm/slurm.h"
#include <optional>

#include "ground/process/capture.h"
#include "operate/cluster/record.h"
#include "operate/cluster/shared_folder.h"
#include "operate/targets/slurm/slurm_text.h"

namespace systole {
namespace {

constexpr Bytes kMostList{std::int64_t{256} << 20};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// "sbatch: error: Batch job submission failed: Invalid account" -> the last part.
std::string said(const Captured& captured) {
  std::string text = first_line(captured.err.empty() ? captured.out : captured.err);
  for (const char* head : {"sbatch: ", "squeue: ", "scancel: ", "slurm_load_jobs ", "error: ", "allocation failure: "})
    if (text.starts_with(head)) text = text.substr(std::string_view(head).size());
  return text.empty() ? to_string(captured.exit) : text;
}

// Slurm's messages for a controller that does not answer (slurm_errno.c).
bool is_unreachable(const std::string& text) {
  for (const char* part : {"Unable to contact", "Connection refused", "timed out", "Communication connection",
                           "Socket timed out", "Transport endpoint", "Zero Bytes"})
    if (text.find(part) != text.npos) return true;
  return false;
}

// A temporary obstacle for a job: machines that are down, reserved or in use.
bool is_for_now(const std::string& text) {
  return text.find("Required node not available") != text.npos || text.find("nodes are busy") != text.npos;
}

bool is_of_machines(const std::string& text) { return text.find("node configuration is not available") != text.npos; }

bool is_unknown_job(const std::string& text) { return text.find("Invalid job id") != text.npos; }

Error failed(const char* program, const Captured& captured) {
  const std::string why = said(captured);
  if (captured.timed_out) return error(ErrorKind::io, "{} did not answer in a minute", program);
  if (is_unreachable(why) || captured.exit.signal != 0)
    return error(ErrorKind::io, "{} cannot ask Slurm's controller: {}", program, why)
        .hinted("`sinfo` and `scontrol ping` say whether it is up");
  return error(ErrorKind::invalid, "{} refuses: {}", program, why)
      .coded(is_for_now(why)       ? ErrorCode::machines_away
             : is_unknown_job(why) ? ErrorCode::no_such_job
                                   : ErrorCode::none);
}

class Slurm : public ClusterClient {
 public:
  const char* name() const override { return "slurm"; }

  // Slurm accepts a job that fits none of its machines, and lets it wait forever, so ask beforehand. The answer counts
  // only while Slurm knows the state of all its machines. If none is away, it is asked again, because machines may have
  // returned since the answer.
  Result<std::string> send(const Record& record) override {
    std::optional<Error> why = TRY(refusal(record));
    if (why && is_of_machines(why->message)) {
      if (TRY(some_are_away())) {
        why.reset();
      } else {
        why = TRY(refusal(record));
      }
    }
    if (why) return *why;
    const Captured sent = TRY(run(batch(record, false)));
    if (!sent.exit.ok() || sent.timed_out) return failed("sbatch", sent);
    return read_sbatch(sent.out);
  }

  Result<std::vector<JobStatus>> query(std::span<const Record> records) override {
    Command command;
    command.argv = {"squeue", "--noheader", "--array", "--states=all", "--me"};
    command.argv.push_back(std::string("--Format=") + kSqueueFormat);
    if (records.size() == 1) command.argv.push_back("--name=" + records[0].run);
    command.env = {{"SLURM_TIME_FORMAT", "%s"}};
    const Captured list = TRY(run(std::move(command)));
    if (!list.exit.ok() || list.timed_out) return failed("squeue", list);
    if (list.truncated) return error(ErrorKind::does_not_fit, "squeue prints more than {}", to_string(kMostList));
    return read_squeue(list.out);
  }

  Result<std::unique_ptr<Output>> output(const Record& record, bool) override {
    return open_output_files(record.place, record.id);
  }

  Status stop(const Record& record, bool now) override {
    if (!now) {
      // The ranks of a running job save and end; a waiting job has nothing to save.
      TRY(cancel({"--signal=TERM", "--state=RUNNING", record.id}));
      return cancel({"--state=PENDING", record.id});
    }
    return cancel({record.id});
  }

  Result<std::vector<std::string>> inside(const Record& record, const JobStatus& job, const std::string& node,
                                          std::span<const std::string> command) override {
    std::vector<std::string> words = {"srun", "--jobid=" + job.id, "--overlap", "--nodes=1", "--ntasks=1"};
    words.push_back("--chdir=" + record.from);
    if (!node.empty()) words.push_back("--nodelist=" + node);
    if (command.empty()) {
      words.insert(words.end(), {"--pty", "bash", "-l"});
    } else {
      words.insert(words.end(), command.begin(), command.end());
    }
    return words;
  }

  Status bring(const Record& record, const std::string& folder, const std::string& into) override {
    return copy_shared_folder(record, folder, into);
  }

  Status purge(const Record&) override { return {}; }  // Slurm forgets a finished job

 private:
  // `test`: only asks whether it could run at all.
  static Command batch(const Record& record, bool test) {
    Command command;
    command.argv = {"sbatch", "--parsable", "--export=ALL", "--comment=" + slurm_label(record.run, record.submission),
                    fmt::format("--output={}/{}.log", record.place, record.array ? "%A_%a" : "%j")};
    if (test) {
      command.argv.push_back("--test-only");
    } else if (!record.after.empty()) {
      command.argv.push_back(fmt::format("--dependency=afterok:{}", fmt::join(record.after, ":")));
      command.argv.push_back("--kill-on-invalid-dep=yes");
    }
    command.argv.push_back(record.place + "/files/job.sbatch");
    command.cwd = record.from;
    command.env = {
        {"SYSTOLE", record.program}, {"SYSTOLE_FILES", record.place + "/files"}, {"SYSTOLE_STATE", record.place}};
    return command;
  }
  // Why Slurm would never run it; nothing if it would.
  static Result<std::optional<Error>> refusal(const Record& record) {
    const Captured tested = TRY(run(batch(record, true)));
    if (tested.exit.ok() && !tested.timed_out) return std::optional<Error>();
    Error why = failed("sbatch", tested);
    if (why.code == ErrorCode::machines_away) return std::optional<Error>();
    return std::optional<Error>(std::move(why));
  }
  static Result<bool> some_are_away() {
    Command command;
    command.argv = {"sinfo", "--noheader", "--Node", "--format=%T %v"};
    const Captured list = TRY(run(std::move(command)));
    if (!list.exit.ok() || list.timed_out) return failed("sinfo", list);
    return has_machines_away(list.out);
  }
  static Result<Captured> run(Command command) {
    CaptureOptions options;
    options.limit = kMostList;
    options.timeout = Seconds(60.0);
    return run_captured(std::move(command), options);
  }
  static Status cancel(std::vector<std::string> words) {
    words.insert(words.begin(), "scancel");
    words.insert(words.begin() + 1, "--quiet");
    Command command;
    command.argv = std::move(words);
    const Captured asked = TRY(run(std::move(command)));
    if (asked.exit.ok() && !asked.timed_out) return {};
    const Error why = failed("scancel", asked);
    if (why.code == ErrorCode::no_such_job) return {};  // it is over, and forgotten
    return why;
  }
};

}  // namespace

Result<std::unique_ptr<ClusterClient>> open_slurm() {
  for (const char* program : {"sbatch", "squeue", "scancel", "sinfo"}) {
    if (find_program(program).ok()) continue;
    return error(ErrorKind::not_found, "there is no '{}' here: Slurm's programs are on its login nodes", program)
        .hinted("run this there; or install them (Debian: slurm-client) with the cluster's slurm.conf and munge.key");
  }
  return std::unique_ptr<ClusterClient>(std::make_unique<Slurm>());
}

}  // namespace systole
