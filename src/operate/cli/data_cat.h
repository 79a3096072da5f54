#pragma once
// `systole data cat`, in the group `data` (data.cc).

#include <memory>

#include "execute/data/formats/record_file.h"
#include "ground/store/object_store.h"
#include "operate/cli/command.h"

namespace systole::cli {

// A file of records by its name: of this machine, or an object of a bucket, of which only what is needed is read.
struct NamedRecords {
  std::unique_ptr<ObjectStore> objects;  // null: of this machine
  std::unique_ptr<Store> files;
  std::unique_ptr<RecordReader> reader;
};
// Throws Failure: not_found, io, corrupt; invalid (its name says no format).
NamedRecords open_named_records(const std::string& name);

// Where an option names the field `asked` and a record has no such, the hint says which it has: "--columns jpg". Other
// errors are as they were.
Error hinted_as(std::string_view option, std::string_view asked, Error error);

void add_data_cat(Subcommand group, Context& context);

}  // namespace systole::cli
