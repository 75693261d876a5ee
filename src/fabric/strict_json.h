// SPDX-License-Identifier: Apache-2.0
#pragma once

// JSON from outside, read strictly: bounded in length and depth, no key twice in an object (a plain
// parser keeps the last and says nothing), no key nobody knows. Internal to this folder. Pure; no
// exception leaves; every error is kInvalidArgument and begins with the name of the text.

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "nlohmann/json_fwd.hpp"

namespace switchyard::fabric {

inline constexpr int kMaxJsonDepth = 16;

// A piece of hostile text for a message: quoted, control characters escaped, 64 characters at most.
[[nodiscard]] std::string Quoted(absl::string_view text);

// "name: key: message" as kInvalidArgument; `key` may be empty.
[[nodiscard]] Status BadJson(absl::string_view name, absl::string_view key,
                             absl::string_view message);

// The whole text, whose top level must be an object.
[[nodiscard]] Result<nlohmann::json> ParseStrictJson(absl::string_view text, absl::string_view name,
                                                     size_t max_bytes);

// One object of such a text and where it stands ("partitions[3]"; "" at the top), for messages.
// Borrows everything.
class JsonObject {
 public:
  // Fails if `value` is no object, a required key is missing or a key is in neither list.
  [[nodiscard]] static Result<JsonObject> Make(const nlohmann::json& value, absl::string_view name,
                                               std::string path,
                                               std::initializer_list<absl::string_view> required,
                                               std::initializer_list<absl::string_view> optional);

  [[nodiscard]] bool Has(absl::string_view key) const;
  // For the rest the key must be there: required, or Has.
  // A whole number written without fraction or exponent, within [min, max].
  [[nodiscard]] Result<std::int64_t> Integer(absl::string_view key, std::int64_t min,
                                             std::int64_t max) const;
  [[nodiscard]] Result<bool> Bool(absl::string_view key) const;
  [[nodiscard]] Result<std::string> String(absl::string_view key, size_t max_bytes) const;
  // The array itself; its elements are the caller's to check.
  [[nodiscard]] Result<const nlohmann::json*> Array(absl::string_view key) const;

  [[nodiscard]] Status Bad(absl::string_view key, absl::string_view message) const;
  // "partitions[3].gpus"
  [[nodiscard]] std::string PathOf(absl::string_view key) const;
  [[nodiscard]] absl::string_view name() const { return name_; }

 private:
  JsonObject(const nlohmann::json& value, absl::string_view name, std::string path)
      : value_(&value), name_(name), path_(std::move(path)) {}
  [[nodiscard]] const nlohmann::json& At(absl::string_view key) const;

  const nlohmann::json* value_;
  absl::string_view name_;
  std::string path_;
};

}  // namespace switchyard::fabric
