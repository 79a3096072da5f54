#pragma once
// One object from one place to another (transfer.h).

#include "ground/store/transfer.h"

namespace systole {

inline constexpr int kMostTries = 3;  // of an object that changes, or arrives damaged

// What is there now, with a mark that a later change of a file changes, too. Errors: as describe_object.
struct SourceVersion {
  ObjectFacts facts;
  std::string mark;
};
Result<SourceVersion> source_version(const Place& from, std::string_view path);

// Sends the object, again if it changes meanwhile. `arrived` is called with bytes as they come, also with those of an
// earlier call that are there. Errors: those of the stores; corrupt; busy, it changes again and again.
Result<ManifestRow> transfer_object(const TransferItem& item, const Place& to,
                                    const std::function<void(Bytes)>& arrived);
// What broken-off calls left in the folders of these objects: bytes of their present versions, which are on the disk
// already, and files of others, which nothing goes on with. Errors: io; as source_version.
struct BrokenOff {
  Bytes own, others;
  std::vector<std::string> of_others;  // names
};
Result<BrokenOff> broken_off(const Place& to, const std::vector<TransferItem>& items, int jobs);
// Removes what broken-off calls left in the folders of these objects. REQUIRES: no other transfer writes there.
Status remove_parts(const Place& to, const std::vector<TransferItem>& items);

}  // namespace systole
