#include "operate/cluster/submit.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "ground/base/files.h"
#include "ground/net/token.h"
#include "ground/store/sha256.h"
#include "operate/cluster/ledger.h"

namespace systole {
namespace {

namespace fs = std::filesystem;

Error os(const std::error_code& code, const std::string& what) {
  return error(code == std::errc::no_space_on_device ? ErrorKind::no_space : ErrorKind::io, "{}: {}", what,
               code.message());
}

struct Told {  // by the run's own folder
  std::vector<LedgerTurn> turns;
  bool asked_to_stop = false;
};

Told told_by(const Record& record) {
  Told told;
  const Result<std::string> text = ledger_text(ledger_of(record));
  if (text.ok()) told.turns = read_ledger(*text);
  std::error_code failed;  // behind the ledger: an end that it tells was asked for before
  told.asked_to_stop = fs::exists(record.place + "/stop", failed);
  return told;
}

bool is_job_of(const std::string& id, const std::string& record_id) {
  return !record_id.empty() && (id == record_id || id.starts_with(record_id + "_"));
}

// Of each of its jobs that began.
bool ledger_has_end(const Record& record) {
  std::map<std::string, bool> ended;
  for (const LedgerTurn& turn : told_by(record).turns)
    if (is_job_of(turn.id, record.id)) ended[turn.id] = turn.ended_at.has_value();
  return !ended.empty() && std::ranges::all_of(ended, [](const auto& job) { return job.second; });
}

std::vector<Seen> with_ledger(const Record& record, std::vector<Seen> jobs) {
  const Told told = told_by(record);
  std::map<std::string, const LedgerTurn*> last;
  for (const LedgerTurn& turn : told.turns)
    if (is_job_of(turn.id, record.id)) last[turn.id] = &turn;
  for (Seen& job : jobs) {
    const auto turn = last.find(job.id);
    if (job.sure) {
      if (turn != last.end()) last.erase(turn);
      if (told.asked_to_stop && job.phase == Phase::running) job.phase = Phase::saving;
      continue;
    }
    if (job.phase == Phase::running && told.asked_to_stop) job.phase = Phase::saving;
    const bool begun = turn != last.end() && turn->second->restart >= job.restarts;
    if (job.phase == Phase::running && !begun) job.phase = Phase::starting;
    if (turn == last.end()) continue;
    if (is_over(job.phase) && turn->second->code && turn->second->restart == job.restarts)
      end_with(job, *turn->second->code, told.asked_to_stop);
    last.erase(turn);
  }
  for (const auto& [id, turn] : last) {  // the target has forgotten these
    Seen job{.id = id, .run = record.run, .submission = record.submission, .restarts = turn->restart};
    job.began_at = turn->began_at;
    job.ended_at = turn->ended_at.value_or(0);
    if (turn->code) {
      end_with(job, *turn->code, told.asked_to_stop);
    } else {
      job.reason = fmt::format("{} no longer knows it, and it told of no end", record.target);
    }
    jobs.push_back(std::move(job));
  }
  if (jobs.empty() && told.asked_to_stop && !record.id.empty())
    jobs.push_back({.id = record.id, .run = record.run, .submission = record.submission, .phase = Phase::stopped});
  std::ranges::sort(jobs, [](const Seen& a, const Seen& b) {
    return a.id.size() != b.id.size() ? a.id.size() < b.id.size() : a.id < b.id;
  });
  return jobs;
}

std::vector<Seen> of(const std::vector<Seen>& all, const Record& record) {
  std::vector<Seen> mine;
  std::ranges::copy_if(all, std::back_inserter(mine),
                       [&](const Seen& job) { return job.submission == record.submission; });
  return with_ledger(record, std::move(mine));
}

std::string base_of(const std::string& id) { return id.substr(0, id.find('_')); }

// The id that a submission has there, when it came to one.
Result<std::string> id_there(ClusterClient& cluster, const Record& record) {
  for (const Seen& job : TRY(cluster.look({&record, 1})))
    if (job.submission == record.submission) return base_of(job.id);
  return std::string();
}

// Not std::filesystem's, to which a full disk is an input/output error.
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

// The program under its digest, once for all runs; whole or absent. REQUIRES: lock_programs is held.
Result<std::string> place_program(const SubmitAsk& ask, Submissions& submissions) {
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

Status write_files(const SubmitAsk& ask, const Record& record, Submissions& submissions) {
  for (const RenderedFile& source : ask.sources)
    TRY(write_whole(submissions.store(), record.run + "/" + source.path, source.text));
  for (const RenderedFile& file : ask.files) {
    const std::string path = record.run + "/files/" + file.path;
    TRY(make_dirs_synced(submissions.store(), path.substr(0, path.rfind('/'))));
    TRY(write_whole(submissions.store(), path, file.text));
  }
  return {};
}

// A name out of a cluster that may be a folder's here.
bool dns_name(const std::string& run) {
  return !run.empty() && run.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == run.npos;
}

Node details(const Record& record) {
  return Node::map({{"target", record.target}, {"submission", record.submission}, {"id", record.id}});
}

// All that is on disk before anything is sent.
Status prepare(ClusterClient& cluster, const SubmitAsk& ask, Record& record, Desk desk) {
  std::unique_ptr<FileLock> until_named;
  if (cluster.brings_program()) {
    until_named = TRY(desk.submissions.lock_programs(desk.clock));
    record.program = TRY(place_program(ask, desk.submissions));
  }
  TRY(write_files(ask, record, desk.submissions));
  TRY(desk.submissions.store().remove(record.run + "/stop"));
  record.audit = TRY(desk.audit.append("submit", record.run, details(record)));
  return desk.submissions.write(record);
}

// Before anything is asked about the old one: a cluster that never had it would say that it is gone.
Status check_same_cluster(const Record& old, const Record& next) {
  const auto refused = [&](const std::string& where, std::string hint) {
    return error(ErrorKind::exists, "the run '{}' was submitted to {}", old.run, where).hinted(std::move(hint));
  };
  if (old.target != next.target) return refused(old.target, "another name: --run");
  const auto was = old.where.find("context"), is = next.where.find("context");
  if (was == old.where.end() || is == next.where.end() || was->second == is->second) return {};
  return refused("context " + was->second, fmt::format("--context {}; or another name: --run", was->second));
}

// What a run of that name that is there already means: go on with it, send it again, or neither.
Result<bool> goes_on(ClusterClient& cluster, const Record& old, const SubmitAsk& ask) {
  const Seen seen = overall(TRY(look(cluster, old)));
  const bool same = old.workload_sha256 == ask.record.workload_sha256 && old.plan_sha256 == ask.record.plan_sha256;
  const auto refused = [&](std::string why, std::string hint) {
    return error(ErrorKind::exists, "the run '{}' {}", old.run, why).hinted(std::move(hint));
  };
  if (!is_over(seen.phase) && seen.phase != Phase::unknown) {
    if (same) return true;
    return refused(fmt::format("is {} as job {}, with another workload", name_of(seen.phase), old.id),
                   fmt::format("another name: --run; or end that one: systole stop {}", old.run));
  }
  if (seen.phase == Phase::done && !ask.again)
    return refused("is done", fmt::format("another name: --run; its results: systole results {}", old.run));
  if (!ask.again)
    return refused(fmt::format("was submitted before, and {}{}", seen.phase == Phase::unknown ? "its state is " : "",
                               name_of(seen.phase)),
                   fmt::format("systole resume {} goes on with it; another one has another name: --run", old.run));
  return false;
}

// A job whose record is lost, with all that it takes to send it again.
Result<Submitted> taken_over(const Seen& job, Record record, bool brings_program, const SubmitAsk& ask, Desk desk) {
  record.submission = job.submission;
  record.id = base_of(job.id);
  record.submitted_at = desk.clock.timestamp();
  record.by = who_and_where();
  std::unique_ptr<FileLock> until_named;
  if (brings_program) {
    until_named = TRY(desk.submissions.lock_programs(desk.clock));
    record.program = TRY(place_program(ask, desk.submissions));
  }
  TRY(write_files(ask, record, desk.submissions));
  record.audit = TRY(desk.audit.append("taken over", record.run, details(record)));
  TRY(desk.submissions.write(record));
  return Submitted{record, true};
}

}  // namespace

Result<std::vector<Seen>> look(ClusterClient& cluster, const Record& record) {
  return of(TRY(cluster.look({&record, 1})), record);
}

Result<std::vector<std::vector<Seen>>> look(ClusterClient& cluster, std::span<const Record> records) {
  const std::vector<Seen> all = TRY(cluster.look(records));
  std::map<std::string, std::vector<Seen>> by_submission;
  for (const Seen& job : all) by_submission[job.submission].push_back(job);
  std::vector<std::vector<Seen>> seen;
  for (const Record& record : records) seen.push_back(with_ledger(record, std::move(by_submission[record.submission])));
  return seen;
}

namespace {

// What the target said no to: nothing of it stays, or what was there before.
Error refused(Error why, const Record& record, const std::optional<Record>& old, Desk desk) {
  const Result<std::string> told = desk.audit.append("refused", record.run, Node::map({{"why", why.message}}));
  const Status undone = old ? desk.submissions.write(*old) : desk.submissions.remove(record.run);
  if (!told.ok()) why.others.push_back(told.error());
  if (!undone.ok()) why.others.push_back(undone.error());
  return why;
}

Result<Submitted> submit_locked(ClusterClient& cluster, const SubmitAsk& ask, Desk desk) {
  Submissions& submissions = desk.submissions;
  std::optional<Record> old = TRY(submissions.find(ask.record.run));
  Record record = ask.record;
  record.place = submissions.place(record.run);
  if (old) TRY(check_same_cluster(*old, record));
  if (old && old->id.empty()) {  // somebody was ended while sending it
    old->id = TRY(id_there(cluster, *old));
    if (!old->id.empty()) TRY(submissions.write(*old));
  }
  if (old && !old->id.empty()) {
    if (TRY(goes_on(cluster, *old, ask))) return Submitted{*old, true};
    record.earlier = old->earlier;
    record.earlier.push_back(old->id);
  } else {
    for (const Seen& job : TRY(cluster.look({&record, 1}))) {  // without a record of ours
      if (job.run != record.run || is_over(job.phase) || job.phase == Phase::unknown) continue;
      if (job.workload == record.workload_sha256)
        return taken_over(job, std::move(record), cluster.brings_program(), ask, desk);
      return error(ErrorKind::exists, "job {} is {} under the name '{}', and was not submitted from here", job.id,
                   name_of(job.phase), record.run)
          .hinted("go on where its folder of runs is; or another name: --run");
    }
  }
  // What a submission that was ended half-way left there is its own.
  const bool goes_on_sending = old && old->id.empty();
  record.submission = goes_on_sending ? old->submission : TRY(RunToken::make()).hex().substr(0, 16);
  record.submitted_at = desk.clock.timestamp();
  record.by = who_and_where();
  record.id.clear();
  if (Status ready = prepare(cluster, ask, record, desk); !ready.ok()) {
    if (!old) (void)submissions.remove(record.run);  // half of it is of no use
    return std::move(ready).error();
  }
  Result<std::string> id = cluster.send(record);
  if (!id.ok()) {
    Result<std::string> there = std::string();
    if (id.error().kind == ErrorKind::io) there = id_there(cluster, record);
    if (!there.ok())
      return error(ErrorKind::io, "whether {} took '{}' is not known: {}", record.target, record.run,
                   id.error().message)
          .hinted("the same command again finds it, or sends it: never twice");
    if (there->empty()) return refused(std::move(id).error(), record, old, desk);
    id = std::move(there);
  }
  record.id = *id;
  record.audit = TRY(desk.audit.append("submitted", record.run, details(record)));
  TRY(submissions.write(record));
  return Submitted{record, false};
}

// What a submission found before it began.
struct Before {
  bool place = false, program = false;
};

// One that failed leaves nothing, unless a record tells that the target may have taken it.
Status leave_nothing(const Record& record, const Before& before, Desk desk) {
  if (!before.place && !TRY(desk.submissions.find(record.run))) TRY(desk.submissions.remove(record.run));
  if (before.program) return {};
  return desk.submissions.remove_program(record.program_sha256, desk.clock);
}

}  // namespace

Result<Submitted> submit(ClusterClient& cluster, const SubmitAsk& ask, Desk desk) {
  Store& store = desk.submissions.store();
  const Before before{TRY(store.exists(ask.record.run)),
                      TRY(store.exists(fmt::format("{}/{}", kProgramsFolder, ask.record.program_sha256)))};
  const Result<std::unique_ptr<FileLock>> lock = desk.submissions.lock(ask.record.run);
  if (!lock.ok() && lock.error().kind == ErrorKind::busy) return lock.error();
  Result<Submitted> done = lock.ok() ? submit_locked(cluster, ask, desk) : Result<Submitted>(lock.error());
  if (done.ok()) return done;
  Error why = std::move(done).error();
  if (Status left = leave_nothing(ask.record, before, desk); !left.ok()) why.others.push_back(std::move(left).error());
  return why;
}

Result<std::vector<Record>> adopt(ClusterClient& cluster, Desk desk) {
  std::vector<Record> adopted;
  for (Record& record : TRY(cluster.recall(""))) {
    if (!dns_name(record.run) || TRY(desk.submissions.find(record.run))) continue;
    const std::unique_ptr<FileLock> lock = TRY(desk.submissions.lock(record.run));
    if (TRY(desk.submissions.find(record.run))) continue;  // somebody was faster
    record.place = desk.submissions.place(record.run);
    record.from = TRY(working_folder());
    record.audit = TRY(desk.audit.append("adopted", record.run, details(record)));
    TRY(desk.submissions.write(record));
    adopted.push_back(std::move(record));
  }
  return adopted;
}

Result<Seen> stop(ClusterClient& cluster, const Record& record, const StopAsk& ask, Desk desk) {
  Seen seen = overall(TRY(look(cluster, record)));
  if (is_over(seen.phase)) return seen;
  TRY(desk.audit.append(ask.now ? "stop now" : "stop", record.run, details(record)));
  TRY(write_whole(desk.submissions.store(), record.run + "/stop", ""));
  TRY(cluster.stop(record, ask.now));
  const Seconds begun = desk.clock.now();
  bool forced = ask.now;
  while (true) {
    seen = overall(TRY(look(cluster, record)));
    if (is_over(seen.phase) || seen.phase == Phase::unknown) return seen;
    const Seconds waited = desk.clock.now() - begun;
    if (!forced && waited >= ask.patience) {
      TRY(desk.audit.append("stop now", record.run, details(record)));
      TRY(cluster.stop(record, true));
      forced = true;
    } else if (waited >= ask.patience + Seconds(120.0)) {
      return error(ErrorKind::busy, "the run '{}' was ended and is still {}", record.run, name_of(seen.phase))
          .hinted("its cluster's own tools say what holds it");
    }
    desk.clock.sleep(Seconds(0.2));
  }
}

Status purge(ClusterClient& cluster, const Record& record, Desk desk, bool now) {
  const std::unique_ptr<FileLock> lock = TRY(desk.submissions.lock(record.run));
  Seen seen = overall(TRY(look(cluster, record)));
  // One that was asked to stop may still be giving its machines back.
  const Seconds until = desk.clock.now() + Seconds(60.0);
  while (seen.phase == Phase::saving && desk.clock.now() < until) {
    desk.clock.sleep(Seconds(0.2));
    seen = overall(TRY(look(cluster, record)));
  }
  if (!is_over(seen.phase) && seen.phase != Phase::unknown)
    return error(ErrorKind::busy, "the run '{}' is {}", record.run, name_of(seen.phase))
        .hinted(fmt::format("systole stop --purge {}", record.run));
  if (seen.phase == Phase::unknown && !now && !ledger_has_end(record))
    return error(ErrorKind::busy, "whether the run '{}' is over is not known{}{}", record.run,
                 seen.reason.empty() ? "" : ": ", seen.reason)
        .hinted(fmt::format("again when its cluster answers; or without knowing: systole stop --now --purge {}",
                            record.run));
  TRY(cluster.purge(record));
  TRY(desk.audit.append("purge", record.run, details(record)));
  TRY(desk.submissions.remove(record.run));
  return desk.submissions.remove_program(record.program_sha256, desk.clock);
}

}  // namespace systole
