#pragma once
// A store in memory that fails on purpose: the tests' disk. It counts the calls that change something and can fail,
// tear or die at the n-th; it knows what was made safe (journal.h) and shows what a power cut would leave. A test
// runs an act once to learn its number of calls, then again for every one of them:
//
//   for (std::int64_t n = 1; n <= calls; ++n) {
//     FaultyStore store;
//     store.inject(Fault::dies_before(n));
//     EXPECT_THROW(save(store), SimulatedCrash);
//     restore(*store.survivor(Unsynced::torn, n));   // whole or absent
//   }
//
// Changing calls are create, append_to, append, sync, close (each file's first), make_dirs, rename, remove, sync_dir;
// they are numbered from 1 in the order in which they come. Thread-safe.

#include <cstdint>
#include <exception>

#include "ground/store/store.h"
#include "ground/store/testing/journal.h"

namespace systole {

// The machine died. Thrown by the call that kills it and by every call afterwards; nothing may catch it but the test.
struct SimulatedCrash : std::exception {
  const char* what() const noexcept override { return "simulated crash"; }
};

struct Fault {
  enum class Kind { fails, dies_before, dies_after };
  Kind kind;
  std::int64_t call;        // the n-th changing call, from 1
  int number = 0;           // fails: the errno value
  std::int64_t landed = 0;  // of an append: bytes that reach the file all the same
  bool onwards = false;     // every later call too

  static Fault fails(std::int64_t call, int number, std::int64_t landed = 0) {
    return {Kind::fails, call, number, landed, false};
  }
  static Fault fails_from(std::int64_t call, int number) { return {Kind::fails, call, number, 0, true}; }
  // `landed` bytes of the call, if it is an append, reach the file (unsynced).
  static Fault dies_before(std::int64_t call, std::int64_t landed = 0) {
    return {Kind::dies_before, call, 0, landed, false};
  }
  static Fault dies_after(std::int64_t call) { return {Kind::dies_after, call, 0, 0, false}; }
};

struct ReadFault {
  std::int64_t read;     // the n-th read, from 1
  int number = 0;        // the errno value; 0: a bit flips instead
  std::int64_t bit = 0;  // which bit of the bytes read, modulo their number
};

class FaultyStore : public Store {
 public:
  FaultyStore();
  // Begins with all that `initial` holds, safe on disk.
  explicit FaultyStore(Store& initial);
  ~FaultyStore() override;

  void inject(Fault fault);
  void inject(ReadFault fault);
  void clear_faults();
  // Appends beyond this many bytes in all files land as far as they fit and fail with no_space.
  void limit_space(Bytes limit);
  // Flips a bit where it lies, in the live and the safe bytes. Errors: as read.
  Status flip_bit(std::string_view path, std::int64_t byte, int bit);

  std::int64_t changing_calls() const;
  std::int64_t reads() const;
  std::vector<std::string> calls() const;  // "append a/b.tmp", in order, for messages
  bool crashed() const;
  // What the disk holds if the power is cut now, or was when it crashed.
  std::unique_ptr<Store> survivor(Unsynced mode, std::uint64_t seed = 0) const;

  Result<std::unique_ptr<WritableFile>> create(std::string_view path) override;
  Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) override;
  Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) override;
  Result<Bytes> size(std::string_view path) override;
  Result<bool> exists(std::string_view path) override;
  Result<std::vector<std::string>> list(std::string_view dir) override;
  Status make_dirs(std::string_view dir) override;
  Status rename(std::string_view from, std::string_view to) override;
  Status remove(std::string_view path) override;
  Status sync_dir(std::string_view dir) override;
  Result<Bytes> free_space() override;

 private:
  class Disk;
  class File;
  std::shared_ptr<Disk> disk_;
};

}  // namespace systole
