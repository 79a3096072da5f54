#pragma once
// An object store with injected faults, around another one. Its n-th changing call is refused, or takes effect and
// loses its answer, or the process dies before or after it. These are the faults of a cloud store; for the faults of a
// disk use faulty.h with objects_in(FaultyStore).
//
// Changing calls are put, start_upload, append, complete, complete_as, abort, remove, abort_uploads and settle; they
// are numbered from 1 in call order. Uploads of a dead process stay open. Thread-safe.

#include <mutex>

#include "ground/store/object_store.h"
#include "ground/store/testing/faulty.h"

namespace systole {

struct ObjectFault {
  enum class Kind { refused, answer_lost, dies_before, dies_after };
  Kind kind;
  std::int64_t call;     // the n-th changing call, from 1
  bool onwards = false;  // every later call too
};

class FaultyObjects : public ObjectStore {
 public:
  explicit FaultyObjects(ObjectStore& under) : under_(under) {}

  void inject(ObjectFault fault);
  void clear_faults();
  std::vector<std::string> calls() const;  // "put a/b", in order, for messages
  std::int64_t changing_calls() const { return static_cast<std::int64_t>(calls().size()); }

  Result<Bytes> size(std::string_view path) override;
  Status get(std::string_view path, std::int64_t offset, std::span<std::byte> into) override;
  Result<Versioned> get_whole(std::string_view path, Bytes limit) override;
  using ObjectStore::put;
  Result<Generation> put(std::string_view path, std::span<const std::byte> bytes, const Precondition& when,
                         Durability durability) override;
  Result<std::unique_ptr<Upload>> start_upload(std::string_view path) override;
  Result<ObjectList> list(std::string_view prefix, ListDepth depth) override;
  Status remove(std::string_view path, const Precondition& when) override;
  Result<Bytes> abort_uploads(std::string_view prefix) override;
  Status settle(std::string_view dir) override;
  Status make_folder(std::string_view dir) override { return under_.make_folder(dir); }
  Result<Bytes> free_space() override { return under_.free_space(); }

 private:
  class FaultyUpload;
  template <typename Act>
  auto change(std::string call, Act act) -> decltype(act());
  void alive() const;
  const ObjectFault* due() const;

  ObjectStore& under_;
  mutable std::recursive_mutex mutex_;
  std::vector<ObjectFault> faults_;
  std::vector<std::string> calls_;
  std::vector<std::unique_ptr<Upload>> left_;  // open uploads of the dead process
  bool dead_ = false;
};

}  // namespace systole
