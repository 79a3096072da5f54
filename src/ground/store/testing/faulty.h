#pragma once
// A store in memory with injected faults, for tests. It counts the calls that change something; the n-th can fail, tear
// or die. It tracks what is durable (journal.h) and shows what a power cut would leave. A test runs an operation once
// to count its calls, then again with a fault at each of them:
//
//   for (std::int64_t n = 1; n <= calls; ++n) {
//     FaultyStore store;
//     store.inject(Fault::dies_before(n));
//     EXPECT_THROW(save(store), SimulatedCrash);
//     restore(*store.survivor(Unsynced::torn, n));   // whole or absent
//   }
//
// Changing calls are create, append_to, append, sync, close (each file's first), make_dirs, rename, link, remove,
// remove_dir, sync_dir; they are numbered from 1 in call order. Thread-safe.

#include <cstdint>
#include <exception>

#include "ground/store/store.h"
#include "ground/store/testing/journal.h"

namespace systole {

// The simulated machine died. The fatal call and every later call throw it; only the test may catch it.
struct SimulatedCrash : std::exception {
  const char* what() const noexcept override { return "simulated crash"; }
};

struct Fault {
  enum class Kind { fails, dies_before, dies_after };
  Kind kind;
  std::int64_t call;        // the n-th changing call, from 1
  int number = 0;           // fails: the errno value
  std::int64_t landed = 0;  // for an append: bytes that reach the file all the same
  bool onwards = false;     // every later call too

  static Fault fails(std::int64_t call, int number, std::int64_t landed = 0) {
    return {Kind::fails, call, number, landed, false};
  }
  static Fault fails_from(std::int64_t call, int number) { return {Kind::fails, call, number, 0, true}; }
  // If the call is an append, `landed` of its bytes reach the file (unsynced).
  static Fault dies_before(std::int64_t call, std::int64_t landed = 0) {
    return {Kind::dies_before, call, 0, landed, false};
  }
  static Fault dies_after(std::int64_t call) { return {Kind::dies_after, call, 0, 0, false}; }
};

struct ReadFault {
  std::int64_t read;     // the n-th read, from 1
  int number = 0;        // the errno value; 0: a bit flips instead
  std::int64_t bit = 0;  // index of the bit in the bytes read, modulo their number
};

class FaultyStore : public Store {
 public:
  FaultyStore();
  // Starts with the content of `initial`, all of it durable.
  explicit FaultyStore(Store& initial);
  ~FaultyStore() override;

  void inject(Fault fault);
  void inject(ReadFault fault);
  void clear_faults();
  // Space limit over all files. An append beyond it writes what fits and fails with no_space.
  void limit_space(Bytes limit);
  // Flips a stored bit, in the live and the durable bytes. Errors: as read.
  Status flip_bit(std::string_view path, std::int64_t byte, int bit);

  std::int64_t changing_calls() const;
  std::int64_t reads() const;
  std::vector<std::string> calls() const;  // "append a/b.tmp", in order, for messages
  bool crashed() const;
  // What the disk holds after a power cut now, or at the simulated crash.
  std::unique_ptr<Store> survivor(Unsynced mode, std::uint64_t seed = 0) const;

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override;
  Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) override;
  Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) override;
  Result<Bytes> size(std::string_view path) override;
  Result<bool> exists(std::string_view path) override;
  Result<std::vector<std::string>> list(std::string_view dir) override;
  Status make_dirs(std::string_view dir) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status link(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status remove_dir(std::string_view dir) override;
  Status sync_dir(std::string_view dir) override;
  Result<std::unique_ptr<FileLock>> try_lock(std::string_view dir) override;
  Result<Bytes> free_space() override;

 private:
  class Disk;
  class File;
  std::shared_ptr<Disk> disk_;
};

}  // namespace systole
