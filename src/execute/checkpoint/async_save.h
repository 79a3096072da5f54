#pragma once
// Saving while training goes on: `begin` copies the tensors into a buffer that was planned and allocated beforehand,
// and one I/O thread writes, commits and sweeps. A failure is kept and surfaces at the next call.
//
//   AsyncSaver saver(folder, options, planned);
//   TRY(saver.begin(request));            // returns once the tensors are copied
//   ... training steps ...
//   if (auto done = TRY(saver.poll())) log(*done);
//   TRY(saver.wait());                    // before the end, and before a save that must not overtake another
//
// One thread calls; the store and the phase hook are used by the I/O thread too. Phase snapshot runs on the caller's
// thread, the others on the I/O thread.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "execute/checkpoint/save.h"

namespace systole::checkpoint {

class AsyncSaver {
 public:
  // `buffer_bytes`: of the snapshot buffer, see snapshot_bytes; 0 when only begin_in_place is used.
  AsyncSaver(Folder folder, SaveOptions options, Bytes buffer_bytes);
  ~AsyncSaver();  // waits for a save in flight; a failure that was not asked for is lost
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  // Copies every tensor's bytes into the buffer and starts the save. With a request of the same tensors as the last one
  // this allocates nothing for them. The saver counts its saves (SaveRequest::number), so every rank of a group begins
  // as many.
  // Errors: busy (a save is in flight), does_not_fit (the buffer is smaller than the tensors), and the failure of the
  // save before, which then counts as told: nothing is started.
  Status begin(const SaveRequest& request);

  // The same without a copy: the caller keeps the bytes as they are until poll or wait say that it is done. For a
  // snapshot that the program's own action took.
  Status begin_in_place(const SaveRequest& request);

  // The report of a save that has ended since the last call; nothing while it runs or when none was begun.
  // Errors: why it failed.
  Result<std::optional<SaveReport>> poll();
  // The same, after waiting for the save in flight.
  Result<std::optional<SaveReport>> wait();

  bool in_flight() const;

  // The buffer, for the program's snapshot action to write into. REQUIRES: no save is in flight while it is written.
  std::span<std::byte> buffer();

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

// The size of the buffer that `begin` needs for these tensors: each aligned to 64 bytes.
Bytes snapshot_bytes(std::span<const TensorPart> parts);

}  // namespace systole::checkpoint
