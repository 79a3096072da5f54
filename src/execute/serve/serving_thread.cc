#include "execute/serve/serving_thread.h"

namespace systole {
namespace {

// Requests that are queued during one step beyond those that can be taken after it.
constexpr std::int64_t kQueued = 1024;
// Texts that may wait for their vectors: eight of the largest requests.
constexpr std::int64_t kMostTexts = 16384;

// What a request is told when serving has failed: whatever kind that failure has, it is not the request's.
Error told(Error failure) {
  failure.kind = ErrorKind::internal;
  return failure;
}

ServingLoopOptions waits(ServingLoopOptions options, std::int64_t waiting) {
  options.waiting = waiting;
  return options;
}

}  // namespace

ServingThread::ServingThread(std::unique_ptr<Engine> engine, std::int64_t waiting, std::optional<std::int64_t> step,
                             ServingLoopOptions options)
    : engine_(std::move(engine)),
      loop_(*engine_, waits(options, waiting)),
      vectors_(*engine_),
      most_(engine_->slots() + waiting),
      counts_{.step = step},
      thread_([this] { run(); }) {}

ServingThread::~ServingThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::uint64_t ServingThread::submit(SequenceRequest request, ServingReceiver receiver) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(mutex_);
    id = request.id = ++last_id_;
    const bool is_surplus = adds_ >= most_ + kQueued;
    if (is_surplus) request.prompt = {};  // a step may last, and prompts are large
    commands_.emplace_back(Add{std::move(request), std::move(receiver), is_surplus});
    ++adds_;
    ++counts_.waiting;
  }
  changed_.notify_all();
  return id;
}

void ServingThread::embed(TextsRequest request) {
  const auto count = static_cast<std::int64_t>(request.texts.size());
  {
    std::unique_lock lock(mutex_);
    if (texts_ + count > kMostTexts) {
      ++counts_.refused;
      lock.unlock();
      return request.done(
          error(ErrorKind::busy, "more texts came at once than may wait for vectors").hinted("try again later"));
    }
    texts_ += count;
    std::int64_t tokens = 0;
    for (const std::vector<std::int32_t>& text : request.texts) tokens += static_cast<std::int64_t>(text.size());
    request.done = [this, count, tokens, is_unwanted = request.is_unwanted,
                    done = std::move(request.done)](Result<TextsRequest::Vectors> vectors) {
      {
        const bool left = !vectors.ok() && is_unwanted && is_unwanted();
        const std::lock_guard guard(mutex_);
        texts_ -= count;
        counts_.texts += vectors.ok() ? count : 0;
        counts_.prompt_tokens += vectors.ok() ? tokens : 0;
        counts_.cancelled += left ? 1 : 0;
        counts_.refused += vectors.ok() || left ? 0 : 1;
      }
      done(std::move(vectors));
    };
    commands_.emplace_back(std::move(request));
  }
  changed_.notify_all();
}

void ServingThread::cancel(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  commands_.emplace_back(id);
  changed_.notify_all();
}

void ServingThread::reload(WeightsReload reload) {
  const std::lock_guard lock(mutex_);
  CHECK(counts_.step, "a reload of weights that are of no checkpoint");
  commands_.emplace_back(std::move(reload));
  changed_.notify_all();
}

void ServingThread::note_failed_reload() {
  const std::lock_guard lock(mutex_);
  ++counts_.failed_reloads;
}

void ServingThread::drain() {
  const std::lock_guard lock(mutex_);
  counts_.draining = true;
  commands_.emplace_back(Drain{});
  changed_.notify_all();
}

std::optional<Error> ServingThread::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

ServingCounts ServingThread::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

// Why nothing is accepted any more.
std::optional<Error> ServingThread::closed() const {
  if (const std::optional<Error> why = failure()) return told(*why);
  if (is_drained_) return error(ErrorKind::interrupted, "the server is being stopped");
  return std::nullopt;
}

void ServingThread::add(Add add) {
  const auto refuse = [&](const Error& error) {
    {
      const std::lock_guard lock(mutex_);
      ++counts_.refused;
    }
    add.receiver.refused(error);
  };
  if (const std::optional<Error> why = closed()) return refuse(*why);
  if (add.is_surplus)
    return refuse(error(ErrorKind::busy, "more requests came at once than may wait").hinted("try again later"));
  const std::uint64_t id = add.request.id;
  const auto prompt = static_cast<std::int64_t>(add.request.prompt.size());
  SequenceReceiver receiver{
      [this, token = std::move(add.receiver.token)](std::int32_t next) {
        {
          const std::lock_guard lock(mutex_);
          ++counts_.answer_tokens;
        }
        return token(next);
      },
      [this, id, end = std::move(add.receiver.end), is_whole = std::move(add.receiver.is_whole)](SequenceEnd why) {
        const bool ended = why != SequenceEnd::asked || (is_whole && is_whole());
        {
          const std::lock_guard lock(mutex_);
          ++(ended ? counts_.ended : counts_.cancelled);
        }
        refusals_.erase(id);
        end(why);
      },
      std::move(add.receiver.logprobs), std::move(add.receiver.part)};
  if (Status added = loop_.add(std::move(add.request), std::move(receiver)); !added.ok()) return refuse(added.error());
  refusals_[id] = std::move(add.receiver.refused);
  const std::lock_guard lock(mutex_);
  counts_.prompt_tokens += prompt;
}

void ServingThread::add(TextsRequest request) {
  if (const std::optional<Error> why = closed()) return request.done(*why);
  if (reload_) return held_.push_back(std::move(request));
  vectors_.add(std::move(request));
}

void ServingThread::begin(WeightsReload reload) {
  if (failure()) return;
  reload_ = std::move(reload);
  loop_.hold(true);
}

// What has begun has ended.
Status ServingThread::change_weights() {
  const WeightsReload reload = *std::exchange(reload_, std::nullopt);
  const std::int64_t before = *counts().step, now = TRY(reload.load(*engine_, before));
  loop_.forget_cache();
  loop_.hold(false);
  for (TextsRequest& request : std::exchange(held_, {})) vectors_.add(std::move(request));
  const std::lock_guard lock(mutex_);
  counts_.step = now;
  counts_.reloads += now != before ? 1 : 0;
  counts_.failed_reloads += now != reload.step ? 1 : 0;
  return {};
}

void ServingThread::obey(Command command) {
  if (Add* added = std::get_if<Add>(&command)) return add(std::move(*added));
  if (TextsRequest* texts = std::get_if<TextsRequest>(&command)) return add(std::move(*texts));
  if (WeightsReload* reload = std::get_if<WeightsReload>(&command)) return begin(std::move(*reload));
  if (std::holds_alternative<Drain>(command)) {
    is_drained_ = true;
    return;
  }
  const std::uint64_t id = std::get<std::uint64_t>(command);
  if (!loop_.remove(id)) return;
  refusals_.erase(id);
  const std::lock_guard lock(mutex_);
  ++counts_.cancelled;
}

// The device does not work: every request, now and later, is told.
void ServingThread::fail_all(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = error;
    counts_.failed = true;
    counts_.refused += static_cast<std::int64_t>(refusals_.size());
  }
  for (const auto& [id, refused] : refusals_) {
    loop_.remove(id);
    refused(told(error));
  }
  refusals_.clear();
  vectors_.fail_all(told(error));
  for (TextsRequest& request : std::exchange(held_, {})) request.done(told(error));
  reload_.reset();
}

Result<bool> ServingThread::step() {
  if (failure()) return false;
  try {
    if (may_change_weights()) TRY(change_weights());
    const bool decoded = TRY(loop_.step()), embedded = TRY(vectors_.step());
    return decoded || embedded;
  } catch (const Failure& failure) { return failure.error(); } catch (const std::exception& thrown) {
    return error(ErrorKind::internal, "{}", thrown.what());
  }
}

void ServingThread::run() {
  bool busy = false;
  while (true) {
    std::vector<Command> commands;
    {
      std::unique_lock lock(mutex_);
      counts_.running = loop_.running();
      counts_.waiting = loop_.waiting() + adds_;
      const ServingLoop::Counts counts = loop_.counts();
      counts_.cached_tokens = counts.cached;
      counts_.preemptions = counts.preemptions;
      counts_.draft_tokens = counts.drafted;
      counts_.accepted_tokens = counts.accepted;
      counts_.pages_used = loop_.pages_used();
      counts_.prefill_beside = loop_.prefill_beside();
      changed_.notify_all();
      changed_.wait(lock, [&] { return ends_ || busy || !commands_.empty(); });
      if (ends_) return;
      commands.swap(commands_);
      adds_ = 0;
    }
    for (Command& command : commands) obey(std::move(command));
    Result<bool> stepped = step();
    if (!stepped.ok()) fail_all(stepped.error());
    busy = stepped.ok() && (*stepped || may_change_weights());
  }
}

}  // namespace systole
