#pragma once
// An object store: whole objects under paths, without folders, rename or appending. It offers what a local disk, gs://
// and s3:// have in common. Checkpoints are stored in one. A run's event files are not, because they are appended to
// (store.h).
//
//   auto store = open_store(TRY(read_store_uri("file:///runs/a/checkpoints"))).value();
//   TRY(store->put("claim", text, Precondition::absent()));                   // of all callers exactly one succeeds
//   const Versioned seen = TRY(store->get_whole("latest"));
//   TRY(store->put("latest", next, Precondition::is(seen.generation)));       // refused if it has changed since
//
// Guarantees:
//   atomic      an object appears, is replaced and is removed as a whole; a reader never sees a part of one
//   consistent  a write that has returned is visible to every read and list that begins afterwards
//   conditions  checking a write's condition and writing are one atomic step, also with concurrent writers
//   durable     as the write asks (Durability)
// A write that ends with kind io may have taken place or not, for example if a server's answer is lost. Read, then
// decide.
//
// Paths are relative, '/'-separated, without empty names, "." or ".."; anything else is refused with kind invalid. No
// path may continue another object's path ("a" and "a/b"): some stores allow both, a disk does not. Last names that
// begin with ".systole-" are reserved for the stores: refused, and never listed.
//
// What each call is in each store:
//
//   call            posix                            gs (JSON API)                      s3
//   size            stat                             objects.get, fields=size           HeadObject
//   get             pread                            objects.get alt=media, Range       GetObject, Range
//   get_whole       read; generation: hash of bytes  objects.get, then alt=media of     GetObject; ETag
//                                                    that generation
//   put             temporary file, fsync, rename    objects.insert uploadType=         PutObject
//                                                    multipart, crc32c
//     absent        … link(2)                        ifGenerationMatch=0                If-None-Match: *
//     is(g)         … lock, compare hashes, rename   ifGenerationMatch=g                If-Match: etag
//   start_upload    temporary file                   resumable session of a temporary   CreateMultipartUpload, begun
//                                                    object, begun when a buffer of     when a part of 8 MiB is full
//                                                    8 MiB is full
//   append          write                            PUT with Content-Range             UploadPart
//   complete        fsync, rename or link            the last PUT; objects.rewrite      CompleteMultipartUpload, with
//                                                    with the condition, objects.delete If-None-Match or If-Match
//                                                    (up to 8 MiB: as put)
//   complete_as     rename or link to that name      the same                           the same; from another first
//                                                                                       path UploadPartCopy, DeleteObject
//   abort           unlink                           DELETE of the session              AbortMultipartUpload
//   list            readdir, stat                    objects.list prefix, delimiter,    ListObjectsV2, by pages
//                                                    by pages
//   remove          unlink; is(g): under the lock    objects.delete,                    DeleteObject; If-Match
//                                                    ifGenerationMatch=g
//   abort_uploads   unlink of temporary files        temporary objects (sessions end    ListMultipartUploads,
//                                                    by themselves after a week)        AbortMultipartUpload
//   settle          fsync of the folder and those    nothing                            nothing
//                   above
//   make_folder     mkdir                            nothing                            nothing
//   free_space      statvfs                          unlimited                          unlimited
//
// For gs and s3: 404 is not_found, and busy for is(g); 412 is exists for absent() and busy for is(g); 409, 429, 5xx and
// a lost connection are retried and then io. If a retried conditional write is refused, its first try may be the write
// that took place, so the store compares the object with what it sent. CRC32C (gs) and the checksum of each part (s3)
// are compared both ways.
//
// Thread safety: a store may be used from several threads; an Upload by one at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

class Store;

// A version of an object: an opaque token to compare and hand back. Different bytes have different generations. The
// same bytes written again may keep the generation (posix, s3) or get a new one (gs, memory), so never count writes by
// it.
struct Generation {
  std::string text;
  bool operator==(const Generation&) const = default;
};

// The condition under which a write or a removal takes place.
struct Precondition {
  enum class Kind { always, absent, generation };
  Kind kind = Kind::always;
  Generation generation = {};

  static Precondition always() { return {}; }
  static Precondition absent() { return {Kind::absent, {}}; }  // no object exists at the path
  static Precondition is(Generation seen) { return {Kind::generation, std::move(seen)}; }
};

// What a power cut may undo of a write that returned. gs and s3: nothing, in every mode.
enum class Durability {
  on_return,     // nothing
  when_settled,  // its name, until `settle` of its folder or an on_return write in that folder
  none,          // all of it: for objects that are worthless after a power cut
};

// A multipart write of one object. No part of the object is visible until complete().
// REQUIRES: its store outlives it.
class Upload {
 public:
  virtual ~Upload() = default;  // aborts unless completed
  // Appends `bytes`. Errors: no_space, io; not_found (aborted by another).
  virtual Status append(std::span<const std::byte> bytes) = 0;
  // Completes as put does. After exists or busy it may be completed again under another condition, or aborted; after
  // any other error it is over. Errors: as put; not_found (aborted by another).
  virtual Status complete(const Precondition& when = {}, Durability durability = Durability::on_return) = 0;
  // The same under a path that is known only now, for example one that contains a hash of the bytes. Costs a copy in
  // stores without rename, unless it is the first path. The object at the first path stays unchanged otherwise.
  virtual Status complete_as(std::string_view path, const Precondition& when = {},
                             Durability durability = Durability::on_return) = 0;
  virtual Status abort() = 0;  // idempotent; nothing remains
};

struct Versioned {
  std::string bytes;
  Generation generation;
};

struct ObjectEntry {
  std::string path;
  Bytes size;
  bool operator==(const ObjectEntry&) const = default;
};
struct ObjectList {
  std::vector<ObjectEntry> objects;   // by path, ascending
  std::vector<std::string> prefixes;  // of one_level: paths up to their next '/' and with it, ascending
  // Objects of others whose names are no paths, as "a//b", and the first of these names; not empty ones for folders.
  std::int64_t left_out = 0;
  std::string left_out_name = {};
  bool operator==(const ObjectList&) const = default;
};
enum class ListDepth { all, one_level };

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Errors: not_found, io.
  virtual Result<Bytes> size(std::string_view path) = 0;
  // Fills `into` from `offset`. Errors: not_found, io; corrupt when the object is shorter.
  virtual Status get(std::string_view path, std::int64_t offset, std::span<std::byte> into) = 0;
  // All of one version, and its generation. Errors: not_found, io; does_not_fit if larger than `limit`.
  virtual Result<Versioned> get_whole(std::string_view path, Bytes limit = Bytes(std::int64_t{1} << 32)) = 0;

  // Errors: exists (absent: an object is there), busy (is: another version is there, or none), no_space, io.
  virtual Result<Generation> put(std::string_view path, std::span<const std::byte> bytes, const Precondition& when = {},
                                 Durability durability = Durability::on_return) = 0;
  Result<Generation> put(std::string_view path, std::string_view text, const Precondition& when = {},
                         Durability durability = Durability::on_return) {
    return put(path, std::as_bytes(std::span(text.data(), text.size())), when, durability);
  }
  // Errors: no_space, io.
  virtual Result<std::unique_ptr<Upload>> start_upload(std::string_view path) = 0;

  // The objects whose paths begin with `prefix`, which need not end at a '/'. one_level: only those without a '/' after
  // it, and the prefixes of the others. May be empty. Concurrent writes may be included or not.
  virtual Result<ObjectList> list(std::string_view prefix, ListDepth depth = ListDepth::all) = 0;

  // Fine if absent, except with is(generation). Durable when settled. Errors: busy (is: another version is there, or
  // none), io; invalid for absent().
  virtual Status remove(std::string_view path, const Precondition& when = {}) = 0;

  // Aborts the incomplete uploads under `prefix` (a folder: ends in '/', or is empty), also those of dead processes.
  // Returns the freed space, as far as it is known. REQUIRES: no concurrent writer there. Errors: io.
  virtual Result<Bytes> abort_uploads(std::string_view prefix) = 0;
  // Makes the current names directly under the folder `dir` durable ("" is the store's top): names of objects written
  // `when_settled`, also by others, and removals. Errors: io.
  virtual Status settle(std::string_view dir) = 0;

  // Where objects lie in folders: makes this one, so that one that cannot be written is found before any work. Errors:
  // invalid (an object has that path, or one above it), no_space, io.
  virtual Status make_folder(std::string_view) { return {}; }
  // 2^62 bytes if unlimited. Errors: io.
  virtual Result<Bytes> free_space() { return Bytes(std::int64_t{1} << 62); }
};

// Errors: io.
Result<bool> has_object(ObjectStore& store, std::string_view path);
// Errors: as get_whole.
Result<std::string> get_text(ObjectStore& store, std::string_view path, Bytes limit = Bytes(std::int64_t{1} << 32));

// Where a store is. The schemes are a table in object_store.cc: a new store is a row there and its own files.
struct StoreUri {
  static constexpr std::string_view kFile = "file", kMemory = "memory";

  std::string scheme;  // kFile for a plain path too
  std::string path;    // the text after the scheme; kFile: a folder of this machine, absolute or relative

  static StoreUri local(std::string folder) { return {std::string(kFile), std::move(folder)}; }
  std::string shown() const { return is_local() ? path : scheme + "://" + path; }
  bool is_local() const { return scheme == kFile; }      // then the folder can be locked, and shown as a path
  bool is_lasting() const { return scheme != kMemory; }  // other processes can open it, also later
};
// "file:///folder", a path, or "memory:". Errors: invalid; unsupported for another scheme, by name, with those there
// are in the hint.
Result<StoreUri> read_store_uri(std::string_view text);
// The schemes of stores that last, as a user writes them: for hints.
std::string store_forms();

// A local one is of an existing folder; "memory:" is a new store of this process. Errors: not_found, invalid, io.
Result<std::unique_ptr<ObjectStore>> open_store(const StoreUri& uri);

// The posix store: each object is the file of its path in `files`, borrowed. Its own conventions:
//   temporary files   beside the object, ".systole-<random>-<process>-<count>.tmp"; no two writers share one. Files of
//                     killed processes are not listed and do not disturb; abort_uploads removes them
//   generations       the XXH3-128 of the bytes. It needs no clock and no inode number, both of which can repeat within
//                     a tick, and every machine of a network file system sees the same one. So put-if-generation reads
//                     the object: use it for small objects
//   is(generation)    compares and renames under the lock of the object's folder (Store::try_lock), which a killed
//                     holder releases. Readers need no lock, and absent() and a plain put take none. So an object
//                     written with is(generation) must only be replaced and removed that way while others write it
//   folders           made when an object needs them, removed with their last object
std::unique_ptr<ObjectStore> objects_in(Store& files);
std::unique_ptr<ObjectStore> objects_in(std::unique_ptr<Store> files);  // as their owner
// In memory, with the behavior of a cloud store: generations are counted, and writes are durable at once.
std::unique_ptr<ObjectStore> make_memory_objects();

}  // namespace systole
