#pragma once
// Asynchronous saves: `begin` copies the tensors into a buffer allocated beforehand, and one I/O thread writes, commits
// and sweeps during training. A failure is kept and returned by the next call.
//
//   AsyncSaver saver(folder, options, planned);
//   TRY(saver.begin(request));            // returns once the tensors are copied
//   ... training steps ...
//   if (auto done = TRY(saver.poll())) log(*done);
//   TRY(saver.wait());                    // before the end, and before a save that must not overtake this one
//
// One thread calls. The I/O thread also uses the store and the phase hook. Phase snapshot runs on the caller's thread,
// the others on the I/O thread.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "execute/checkpoint/save.h"

namespace systole::checkpoint {

class AsyncSaver {
 public:
  // `buffer_bytes`: size of the snapshot buffer, see snapshot_bytes; 0 if only begin_in_place is used.
  AsyncSaver(Folder folder, SaveOptions options, Bytes buffer_bytes);
  ~AsyncSaver();  // waits for a save in flight; an unreported failure is lost
  AsyncSaver(const AsyncSaver&) = delete;
  AsyncSaver& operator=(const AsyncSaver&) = delete;

  // Copies every tensor's bytes into the buffer and starts the save. Allocates nothing for the tensors if they are the
  // last request's. The saver counts its saves (SaveRequest::number), so every rank of a group must begin equally
  // many. Errors: busy (a save is in flight), does_not_fit (the buffer is smaller than the tensors), and the failure of
  // the previous save, which then counts as reported. On an error nothing is started.
  Status begin(const SaveRequest& request);

  // The same without a copy: the caller keeps the bytes unchanged until poll or wait reports the end. For a snapshot
  // taken by the program's own snapshot action.
  Status begin_in_place(const SaveRequest& request);

  // The report of a save that ended since the last call; nothing if it still runs or none was begun.
  // Errors: the failure of the save.
  Result<std::optional<SaveReport>> poll();
  // The same, after waiting for the save in flight.
  Result<std::optional<SaveReport>> wait();

  bool in_flight() const;

  // The buffer for the program's snapshot action. REQUIRES: no save is in flight while it is written.
  std::span<std::byte> buffer();

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

// The buffer size that `begin` needs for these tensors: each is aligned to 64 bytes.
Bytes snapshot_bytes(std::span<const TensorPart> parts);

}  // namespace systole::checkpoint
