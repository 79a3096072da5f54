#pragma once
// What opens the stores in clouds, for the table of schemes in object_store.cc.

#include <memory>
#include <string>

#include "ground/store/store_access.h"

namespace systole {

// "BUCKET" or "BUCKET/FOLDER". Errors: invalid.
Status check_gcs_place(const std::string& place);
// Errors: invalid; as `access.gcs`.
Result<std::unique_ptr<ObjectStore>> open_gcs(const std::string& place, const StoreAccess& access);

// "BUCKET" or "BUCKET/FOLDER". Errors: invalid.
Status check_s3_place(const std::string& place);
// Looks for the bucket. Errors: invalid (also: there is no such bucket, or it is in another region), io; as `access.s3`.
Result<std::unique_ptr<ObjectStore>> open_s3(const std::string& place, const StoreAccess& access);

}  // namespace systole
