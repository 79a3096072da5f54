#include "operate/cluster/submit.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ground/base/files.h"
#include "ground/net/token.h"
#include "ground/store/sha256.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

Error os(const std::error_code& code, const std::string& what) {
  return error(code == std::errc::no_space_on_device ? ErrorKind::no_space : ErrorKind::io, "{}: {}", what,
               code.message());
}

// The submission's id on the target, if it was accepted.
Result<std::string> id_there(ClusterClient& cluster, const Record& record) {
  for (const JobStatus& job : TRY(cluster.query({&record, 1})))
    if (job.submission == record.submission) return std::string(job_of(job.id));
  return std::string();
}

// std::filesystem would report a full disk as an input/output error.
Status copy_program(const std::string& from, Store& to, const std::string& name) {
  std::ifstream in(from, std::ios::binary);
  if (!in) return error(ErrorKind::io, "cannot read the program '{}'", from);
  const std::unique_ptr<WritableFile> out = TRY(to.create(name));
  std::vector<char> piece(std::size_t{1} << 20);
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())), in.gcount() > 0)
    TRY(out->append(std::as_bytes(std::span(piece).first(static_cast<std::size_t>(in.gcount())))));
  if (in.bad()) return error(ErrorKind::io, "cannot read the program '{}'", from);
  TRY(out->sync());
  return out->close();
}

// Stores the program under its digest, once for all runs; complete or absent. REQUIRES: lock_programs is held.
Result<std::string> place_program(const SubmitRequest& ask, Submissions& submissions) {
  const std::string name = fmt::format("{}/", kProgramsFolder) + ask.record.program_sha256,
                    path = submissions.path() + "/" + name;
  std::error_code failed;
  if (fs::exists(path, failed)) return path;
  const std::string half = fmt::format("{}.{}", name, TRY(RunToken::make()).hex().substr(0, 8));
  Status copied = copy_program(ask.program, submissions.store(), half);
  if (copied.ok()) fs::permissions(submissions.path() + "/" + half, fs::perms(0755), failed);
  if (copied.ok() && failed) copied = os(failed, fmt::format("cannot make '{}' a program", half));
  if (copied.ok()) copied = submissions.store().rename(half, name);
  if (copied.ok()) return path;
  (void)submissions.store().remove(half);
  return std::move(copied).error();
}

Status write_files(const SubmitRequest& ask, const Record& record, Submissions& submissions) {
  for (const RenderedFile& source : ask.sources)
    TRY(write_whole(submissions.store(), record.run + "/" + source.path, source.text));
  for (const RenderedFile& file : ask.files) {
    const std::string path = record.run + "/files/" + file.path;
    TRY(make_dirs_synced(submissions.store(), path.substr(0, path.rfind('/'))));
    TRY(write_whole(submissions.store(), path, file.text));
  }
  return {};
}

// Whether a name from a cluster is valid as a folder name here.
bool dns_name(const std::string& run) {
  return !run.empty() && run.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == run.npos;
}

Node details(const Record& record) {
  return Node::map({{"target", record.target}, {"submission", record.submission}, {"id", record.id}});
}

// Writes everything to disk that must be there before sending, or that sending again takes; `what` happened, for the
// audit.
Status keep(const char* what, ClusterClient& cluster, const SubmitRequest& ask, Record& record,
            SubmissionContext context) {
  std::unique_ptr<FileLock> until_named;
  if (cluster.brings_program()) {
    until_named = TRY(context.submissions.lock_programs(context.clock));
    record.program = TRY(place_program(ask, context.submissions));
  }
  TRY(write_files(ask, record, context.submissions));
  record.audit = TRY(context.audit.append(what, record.run, details(record)));
  return context.submissions.write(record);
}

// Checked before the old run is queried: a cluster that never had it would say that it is gone.
Status check_same_cluster(const Record& old, const Record& next) {
  const auto refused = [&](const std::string& where, std::string hint) {
    return error(ErrorKind::exists, "the run '{}' was submitted to {}", old.run, where).hinted(std::move(hint));
  };
  if (old.target != next.target) return refused(old.target, "another name: --run");
  const auto was = old.where.find("context"), is = next.where.find("context");
  if (was == old.where.end() || is == next.where.end() || was->second == is->second) return {};
  return refused("context " + was->second, fmt::format("--context {}; or another name: --run", was->second));
}

// Decides on an existing run of that name: true to go on with it, false to send it again, or an error.
Result<bool> goes_on(ClusterClient& cluster, const Record& old, const SubmitRequest& ask, const std::string& told) {
  const JobStatus status = TRY(settle(cluster, old, told)).overall();
  const bool same = old.workload_sha256 == ask.record.workload_sha256 && old.plan_sha256 == ask.record.plan_sha256;
  const auto refused = [&](std::string why, std::string hint) {
    return error(ErrorKind::exists, "the run '{}' {}", old.run, why).hinted(std::move(hint));
  };
  if (!is_over(status.state) && status.state != RunState::unknown) {
    if (same) return true;
    return refused(fmt::format("is {} as job {}, with another workload", name_of(status.state), old.id),
                   fmt::format("another name: --run; or end that one: systole stop {}", old.run));
  }
  if (status.state == RunState::finished && !ask.again)
    return refused("has finished", fmt::format("another name: --run; its results: systole results {}", old.run));
  if (!ask.again)
    return refused(
        fmt::format("was submitted before, and {}", status.state == RunState::unknown       ? "its state is unknown"
                                                    : status.state == RunState::budget_used ? "its budget is used"
                                                                                            : name_of(status.state)),
        fmt::format("systole resume {} goes on with it; another one has another name: --run", old.run));
  return false;
}

// Takes over a job whose record is lost, with everything needed to send it again.
Result<Submitted> taken_over(const JobStatus& job, ClusterClient& cluster, Record record, const SubmitRequest& ask,
                             SubmissionContext context) {
  record.submission = job.submission;
  record.id = job_of(job.id);
  record.submitted_at = context.clock.timestamp();
  record.by = who_and_where();
  TRY(keep("taken over", cluster, ask, record, context));
  return Submitted{record, true};
}

// After a refusal by the target: removes the record, or restores the previous one.
Error refused(Error why, const Record& record, const std::optional<Record>& old, SubmissionContext context) {
  const Result<std::string> told = context.audit.append("refused", record.run, Node::map({{"why", why.message}}));
  const Status undone = old ? context.submissions.write(*old) : context.submissions.forget(record.run);
  if (!told.ok()) why.others.push_back(told.error());
  if (!undone.ok()) why.others.push_back(undone.error());
  return why;
}

Result<Submitted> submit_locked(ClusterClient& cluster, const SubmitRequest& ask, SubmissionContext context) {
  Submissions& submissions = context.submissions;
  std::optional<Record> old = TRY(submissions.find(ask.record.run));
  Record record = ask.record;
  record.place = submissions.place(record.run);
  if (old) TRY(check_same_cluster(*old, record));
  if (old && old->id.empty()) {  // a submitter was killed while sending
    old->id = TRY(id_there(cluster, *old));
    if (!old->id.empty()) TRY(submissions.write(*old));
  }
  if (old && !old->id.empty()) {
    if (TRY(goes_on(cluster, *old, ask, context.told))) return Submitted{*old, true};
    record.earlier = old->earlier;
    record.earlier.push_back(old->id);
  } else {
    for (const JobStatus& job : TRY(cluster.query({&record, 1}))) {  // jobs without a record here
      if (job.run != record.run || is_over(job.state) || job.state == RunState::unknown) continue;
      if (job.workload == record.workload_sha256) return taken_over(job, cluster, std::move(record), ask, context);
      return error(ErrorKind::exists, "job {} is {} under the name '{}', and was not submitted from here", job.id,
                   name_of(job.state), record.run)
          .hinted("go on where its folder of runs is; or another name: --run");
    }
  }
  // An interrupted submission owns what it left there.
  const bool goes_on_sending = old && old->id.empty();
  record.submission = goes_on_sending ? old->submission : TRY(RunToken::make()).hex().substr(0, 16);
  record.submitted_at = context.clock.timestamp();
  record.by = who_and_where();
  record.id.clear();
  TRY(submissions.store().remove(record.run + "/stop"));
  TRY(keep("submit", cluster, ask, record, context));
  Result<std::string> id = cluster.send(record);
  if (!id.ok()) {
    Result<std::string> there = std::string();
    if (id.error().kind == ErrorKind::io) there = id_there(cluster, record);
    if (!there.ok())
      return error(ErrorKind::io, "whether {} took '{}' is not known: {}", record.target, record.run,
                   id.error().message)
          .hinted("the same command again finds it, or sends it: never twice");
    if (there->empty()) return refused(std::move(id).error(), record, old, context);
    id = std::move(there);
  }
  record.id = *id;
  record.audit = TRY(context.audit.append("submitted", record.run, details(record)));
  TRY(submissions.write(record));
  return Submitted{record, false};
}

// The state that a submission found when it began.
struct Before {
  bool place = false, program = false;
};

// A failed submission leaves nothing, unless the target may have accepted it: then its record stays.
Status leave_nothing(const Record& record, const Before& before, SubmissionContext context) {
  if (!before.place && !TRY(context.submissions.find(record.run))) TRY(context.submissions.remove(record.run));
  if (before.program) return {};
  return context.submissions.remove_program(record.program_sha256, context.clock);
}

}  // namespace

Result<Submitted> submit(ClusterClient& cluster, const SubmitRequest& ask, SubmissionContext context) {
  Store& store = context.submissions.store();
  const Before before{TRY(store.exists(ask.record.run)),
                      TRY(store.exists(fmt::format("{}/{}", kProgramsFolder, ask.record.program_sha256)))};
  const Result<std::unique_ptr<FileLock>> lock = context.submissions.lock(ask.record.run);
  if (!lock.ok() && lock.error().kind == ErrorKind::busy) return lock.error();
  Result<Submitted> done = lock.ok() ? submit_locked(cluster, ask, context) : Result<Submitted>(lock.error());
  if (done.ok()) return done;
  Error why = std::move(done).error();
  if (Status left = leave_nothing(ask.record, before, context); !left.ok())
    why.others.push_back(std::move(left).error());
  return why;
}

Result<std::vector<Record>> adopt(ClusterClient& cluster, SubmissionContext context) {
  std::vector<Record> adopted;
  for (Record& record : TRY(cluster.recall(""))) {
    if (!dns_name(record.run) || TRY(context.submissions.find(record.run))) continue;
    const std::unique_ptr<FileLock> lock = TRY(context.submissions.lock(record.run));
    if (TRY(context.submissions.find(record.run))) continue;  // another process was faster
    record.place = context.submissions.place(record.run);
    record.from = TRY(working_folder());
    record.audit = TRY(context.audit.append("adopted", record.run, details(record)));
    TRY(context.submissions.write(record));
    adopted.push_back(std::move(record));
  }
  return adopted;
}

Result<RunStatus> stop(ClusterClient& cluster, const Record& record, const StopRequest& ask,
                       SubmissionContext context) {
  RunStatus status = TRY(settle(cluster, record, context.told));
  if (is_over(status.overall().state)) return status;
  TRY(context.audit.append(ask.now ? "stop now" : "stop", record.run, details(record)));
  TRY(write_whole(context.submissions.store(), record.run + "/stop", ""));
  TRY(cluster.stop(record, ask.now));
  const Seconds begun = context.clock.now();
  bool forced = ask.now;
  while (true) {
    status = TRY(settle(cluster, record, context.told));
    const RunState state = status.overall().state;
    if (is_over(state) || state == RunState::unknown) return status;
    const Seconds waited = context.clock.now() - begun;
    if (!forced && waited >= ask.patience) {
      TRY(context.audit.append("stop now", record.run, details(record)));
      TRY(cluster.stop(record, true));
      forced = true;
    } else if (waited >= ask.patience + Seconds(120.0)) {
      return error(ErrorKind::busy, "the run '{}' was ended and is still {}", record.run, name_of(state))
          .hinted("its cluster's own tools say what holds it");
    }
    context.clock.sleep(Seconds(0.2));
  }
}

Status purge(ClusterClient& cluster, const Record& record, SubmissionContext context, bool now) {
  const std::unique_ptr<FileLock> lock = TRY(context.submissions.lock(record.run));
  RunStatus all = TRY(query(cluster, record, context.told));
  JobStatus status = all.overall();
  // A run that was asked to stop may still be releasing its machines.
  const Seconds until = context.clock.now() + Seconds(60.0);
  while (status.state == RunState::saving && context.clock.now() < until) {
    context.clock.sleep(Seconds(0.2));
    all = TRY(query(cluster, record, context.told));
    status = all.overall();
  }
  if (!is_over(status.state) && status.state != RunState::unknown)
    return error(ErrorKind::busy, "the run '{}' is {}", record.run, name_of(status.state))
        .hinted(fmt::format("systole stop --purge {}", record.run));
  if (status.state == RunState::unknown && !now && !has_end(all, record))
    return error(ErrorKind::busy, "whether the run '{}' is over is not known{}{}", record.run,
                 status.reason.empty() ? "" : ": ", status.reason)
        .hinted(fmt::format("again when its cluster answers; or without knowing: systole stop --now --purge {}",
                            record.run));
  TRY(cluster.purge(record));
  TRY(context.audit.append("purge", record.run, details(record)));
  TRY(context.submissions.remove(record.run));
  return context.submissions.remove_program(record.program_sha256, context.clock);
}

}  // namespace systole
