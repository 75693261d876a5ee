// SPDX-License-Identifier: Apache-2.0
// The symmetries of a partition table, by search: for each module i, and each j behind it, one that
// leaves all before i in place and takes i to j (Sims' way: together these make all others).
#include <map>

#include "bench/placement/states.h"

namespace switchyard::bench {
namespace {

using fabric::ModuleId;
using fabric::ModuleSet;

// Published boards need a few hundred steps a search.
constexpr int kMaxSteps = 100000;

class Search {
 public:
  explicit Search(const Yard& yard)
      : partitions_(yard.table.partitions), modules_(yard.table.modules.ToVector()) {
    for (size_t i = 0; i < partitions_.size(); ++i) {
      position_.emplace(partitions_[i].modules.bits(), static_cast<int>(i));
    }
    const size_t n = modules_.size();
    common_.resize(n * n);
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) {
        for (const fabric::Partition& p : partitions_) {
          if (p.modules.ContainsAll({modules_[a], modules_[b]}))
            ++common_[a * n + b][p.modules.size()];
        }
      }
    }
  }

  [[nodiscard]] size_t size() const { return modules_.size(); }

  // Leaves those before `i` in place and takes i to j; positions in modules_. Empty: none found.
  std::vector<int> Find(size_t i, size_t j) {
    image_.clear();
    taken_.assign(size(), false);
    for (size_t k = 0; k < i; ++k) {
      image_.push_back(k);
      taken_[k] = true;
    }
    steps_ = 0;
    if (!Place(j) || !Extend()) return {};
    return OfPartitions();
  }

 private:
  // Gives the next module the image `to`, if each pair that this makes is in as many partitions of
  // each size as its image.
  bool Place(size_t to) {
    if (taken_[to]) return false;
    const size_t from = image_.size();
    if (common_[from * size() + from] != common_[to * size() + to]) return false;
    for (size_t k = 0; k < from; ++k) {
      if (common_[from * size() + k] != common_[to * size() + image_[k]]) return false;
    }
    image_.push_back(to);
    taken_[to] = true;
    return true;
  }

  bool Extend() {
    if (image_.size() == size()) return !OfPartitions().empty();
    for (size_t to = 0; to < size(); ++to) {
      if (++steps_ > kMaxSteps) return false;
      if (!Place(to)) continue;
      if (Extend()) return true;
      taken_[image_.back()] = false;
      image_.pop_back();
    }
    return false;
  }

  // What the permutation of modules does to the partitions; empty if it takes one to no partition.
  [[nodiscard]] std::vector<int> OfPartitions() const {
    std::vector<int> mapped;
    for (const fabric::Partition& p : partitions_) {
      ModuleSet image;
      for (size_t k = 0; k < size(); ++k) {
        if (p.modules.Contains(modules_[k])) image.Insert(modules_[image_[k]]);
      }
      const auto found = position_.find(image.bits());
      if (found == position_.end()) return {};
      mapped.push_back(found->second);
    }
    return mapped;
  }

  const std::vector<fabric::Partition>& partitions_;
  const std::vector<ModuleId> modules_;
  std::map<std::uint32_t, int> position_;   // modules -> position in the table
  std::vector<std::map<int, int>> common_;  // of two modules: size -> partitions that hold both
  std::vector<size_t> image_;
  std::vector<bool> taken_;
  int steps_ = 0;
};

}  // namespace

std::vector<std::vector<int>> Symmetries(const Yard& yard) {
  Search search(yard);
  std::vector<std::vector<int>> found;
  for (size_t i = 0; i < search.size(); ++i) {
    for (size_t j = i + 1; j < search.size(); ++j) {
      std::vector<int> symmetry = search.Find(i, j);
      if (!symmetry.empty()) found.push_back(std::move(symmetry));
    }
  }
  return found;
}

}  // namespace switchyard::bench
