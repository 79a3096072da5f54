#include "ground/store/testing/faulty_objects.h"

namespace systole {

template <typename Act>
auto FaultyObjects::change(std::string call, Act act) -> decltype(act()) {
  const std::lock_guard lock(mutex_);
  alive();
  calls_.push_back(std::move(call));
  const ObjectFault* fault = due();
  if (!fault) return act();
  const auto kind = fault->kind;
  const bool done = kind == ObjectFault::Kind::answer_lost || kind == ObjectFault::Kind::dies_after;
  if (done) static_cast<void>(act());
  if (kind == ObjectFault::Kind::dies_before || kind == ObjectFault::Kind::dies_after) {
    dead_ = true;
    throw SimulatedCrash();
  }
  return error(ErrorKind::io, "cannot {}: {}", calls_.back(), done ? "the connection was lost" : "503 slow down");
}

void FaultyObjects::alive() const {
  if (dead_) throw SimulatedCrash();
}

const ObjectFault* FaultyObjects::due() const {
  const auto now = static_cast<std::int64_t>(calls_.size());
  for (const ObjectFault& fault : faults_) {
    if (fault.call == now || (fault.onwards && fault.call < now)) return &fault;
  }
  return nullptr;
}

void FaultyObjects::inject(ObjectFault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(fault);
}

void FaultyObjects::clear_faults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
}

std::vector<std::string> FaultyObjects::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

class FaultyObjects::FaultyUpload : public Upload {
 public:
  FaultyUpload(FaultyObjects& store, std::string path, std::unique_ptr<Upload> under)
      : store_(store), path_(std::move(path)), under_(std::move(under)) {}
  FaultyUpload(const FaultyUpload&) = delete;
  FaultyUpload& operator=(const FaultyUpload&) = delete;
  ~FaultyUpload() override {
    const std::lock_guard lock(store_.mutex_);
    if (store_.dead_) store_.left_.push_back(std::move(under_));
  }

  Status append(std::span<const std::byte> bytes) override {
    return store_.change("append " + path_, [&] { return under_->append(bytes); });
  }
  Status complete(const Precondition& when, Durability durability) override {
    return store_.change("complete " + path_, [&] { return under_->complete(when, durability); });
  }
  Status complete_as(std::string_view path, const Precondition& when, Durability durability) override {
    return store_.change(fmt::format("complete_as {}", path),
                         [&] { return under_->complete_as(path, when, durability); });
  }
  Status abort() override {
    return store_.change("abort " + path_, [&] { return under_->abort(); });
  }

 private:
  FaultyObjects& store_;
  std::string path_;
  std::unique_ptr<Upload> under_;
};

Result<Bytes> FaultyObjects::size(std::string_view path) {
  const std::lock_guard lock(mutex_);
  alive();
  return under_.size(path);
}

Status FaultyObjects::get(std::string_view path, std::int64_t offset, std::span<std::byte> into) {
  const std::lock_guard lock(mutex_);
  alive();
  return under_.get(path, offset, into);
}

Result<Versioned> FaultyObjects::get_whole(std::string_view path, Bytes limit) {
  const std::lock_guard lock(mutex_);
  alive();
  return under_.get_whole(path, limit);
}

Result<Generation> FaultyObjects::put(std::string_view path, std::span<const std::byte> bytes, const Precondition& when,
                                      Durability durability) {
  return change(fmt::format("put {}", path), [&] { return under_.put(path, bytes, when, durability); });
}

Result<std::unique_ptr<Upload>> FaultyObjects::start_upload(std::string_view path) {
  return change(fmt::format("start_upload {}", path), [&]() -> Result<std::unique_ptr<Upload>> {
    return std::unique_ptr<Upload>(
        std::make_unique<FaultyUpload>(*this, std::string(path), TRY(under_.start_upload(path))));
  });
}

Result<ObjectList> FaultyObjects::list(std::string_view prefix, ListDepth depth) {
  const std::lock_guard lock(mutex_);
  alive();
  return under_.list(prefix, depth);
}

Status FaultyObjects::remove(std::string_view path, const Precondition& when) {
  return change(fmt::format("remove {}", path), [&] { return under_.remove(path, when); });
}

Result<Bytes> FaultyObjects::abort_uploads(std::string_view prefix) {
  return change(fmt::format("abort_uploads {}", prefix), [&] { return under_.abort_uploads(prefix); });
}

Status FaultyObjects::settle(std::string_view dir) {
  return change(fmt::format("settle {}", dir), [&] { return under_.settle(dir); });
}

}  // namespace systole
