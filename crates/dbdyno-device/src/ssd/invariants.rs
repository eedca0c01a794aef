//! What must hold of the tables at any time, checked in the midst of random loads.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::ftl::{BlockState, Ftl, PagePlace};
use super::{Ssd, SsdSpec};
use crate::contract::{Command, DeviceModel, Kind};
use crate::info::DriveState;

const SIZE_BYTES: u64 = 4 << 20;
const PAGES: u64 = SIZE_BYTES / 4096;

/// A drive so small that a thousand writes fill it: two dies, blocks of 16 pages, perhaps a cache.
fn tiny(state: DriveState, has_cache: bool, drains: bool) -> Ssd {
    let pace = if drains { "write_while_folding_mb_s = 20.0" } else { "" };
    let cache = format!(
        "[slc]\nstatic_bytes = 131072\ndynamic_bytes = 262144\nread_us = 20.0\nprogram_us = 100.0\n\
         fold_after_idle_ms = 1.0\nrefill_at = 0.5\n{pace}\n"
    );
    let text = format!(
        "capacity_bytes = {SIZE_BYTES}\nqueue_depth = 16\nflush_is_a_barrier = false\npower_loss_protected = false\n\
         flush_us = 100.0\nlink_mb_s = 500.0\nread_firmware_us = 5.0\nwrite_firmware_us = 5.0\nread_command_us = 1.0\n\
         write_command_us = 1.0\nbuffer_bytes = 131072\n\
         [flash]\nchannels = 2\ndies_per_channel = 1\nchannel_mb_s = 400.0\nplanes = 2\nplanes_read_apart = true\n\
         page_bytes = 8192\npages_per_program = 1\nread_us = [40.0, 60.0]\nprogram_us = [500.0]\nblock_bytes = 65536\n\
         erase_us = 2000.0\nsuspends_max = 1\nsuspend_us = 10.0\nreads_before_program = 4\n\
         [ftl]\nover_provisioning = 0.1\n{}",
        if has_cache { cache.as_str() } else { "" }
    );
    let spec: SsdSpec = toml::from_str(&text).unwrap();
    spec.check().unwrap();
    Ssd::new(&spec, SIZE_BYTES, 3, state)
}

/// Every mapped page lies in one page of flash, which is written and not free; all counts are right.
fn check(ftl: &Ftl) {
    let mut taken = BTreeSet::new();
    let mut valid = vec![0_u32; ftl.valid.len()];
    for (page, flash_page) in (0_u32..).zip(&ftl.map) {
        let Some(flash_page) = flash_page.checked_sub(1) else { continue };
        assert!(taken.insert(flash_page), "page {flash_page} of flash is that of two pages of the disk");
        assert_eq!(ftl.valid_owner(flash_page), Some(page));
        valid[ftl.geometry.block_of(flash_page) as usize] += 1;
    }
    assert_eq!(valid, ftl.valid, "valid pages by block");
    assert_eq!(taken.len(), ftl.mapped as usize);
    for (block, state) in ftl.state.iter().enumerate().filter(|(_, state)| **state == BlockState::Free) {
        assert_eq!(ftl.valid[block], 0, "block {block} is {state:?} and has data");
    }
    let free = (0..ftl.geometry.data.blocks).filter(|block| ftl.state[*block as usize] == BlockState::Free).count();
    assert_eq!(free, ftl.free_data.len(), "free blocks");
}

/// A kind, its first page, how many, and the time in microseconds after it.
fn steps() -> impl Strategy<Value = Vec<(Kind, u64, u64, u64)>> {
    let kind = prop_oneof![
        10 => Just(Kind::Write), 2 => Just(Kind::Read), 1 => Just(Kind::Discard), 1 => Just(Kind::Flush)
    ];
    prop::collection::vec((kind, 0..PAGES, 1..40_u64, prop_oneof![8 => 0..300_u64, 1 => 0..20_000_u64]), 200..800)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_tables_agree_at_any_time(
        steps in steps(), is_steady in any::<bool>(), has_cache in any::<bool>(), drains in any::<bool>()
    ) {
        let mut drive = tiny(if is_steady { DriveState::Steady } else { DriveState::Fresh }, has_cache, drains);
        check(&drive.ftl);
        let (mut now_ns, mut finished) = (0, Vec::new());
        for (id, &(kind, first, pages, pause_us)) in (0_u64..).zip(&steps) {
            let command = Command { id, kind, offset_bytes: first * 4096, length_bytes: pages * 4096, fua: id % 7 == 0 };
            drive.submit(now_ns, command);
            now_ns += pause_us * 1000;
            drive.poll(now_ns, &mut finished);
            if id % 16 == 0 {
                check(&drive.ftl);
            }
        }
        while let Some(due_ns) = drive.next_due() {
            now_ns = now_ns.max(due_ns);
            drive.poll(now_ns, &mut finished);
        }
        prop_assert_eq!(finished.len(), steps.len());
        check(&drive.ftl);
        // Left to itself the drive comes to an end of its own work, too.
        drive.advance(now_ns + 60_000_000_000);
        prop_assert_eq!(drive.next_event_ns(), None);
        prop_assert_eq!(drive.buffer_used, u64::from(drive.ftl.pages_in_open_units()));
        check(&drive.ftl);
    }
}

#[test]
fn what_is_discarded_is_garbage() {
    let mut drive = tiny(DriveState::Steady, false, false);
    assert_eq!(u64::from(drive.ftl.mapped), PAGES);
    let discard = Command { id: 0, kind: Kind::Discard, offset_bytes: 4096, length_bytes: SIZE_BYTES / 2, fua: false };
    drive.submit(0, discard);
    drive.advance(1_000_000_000);
    assert_eq!(u64::from(drive.ftl.mapped), PAGES / 2);
    assert!(matches!(drive.ftl.find(0), PagePlace::Flash(_)));
    assert_eq!((drive.ftl.find(1), drive.ftl.find(512)), (PagePlace::Nothing, PagePlace::Nothing));
    assert!(matches!(drive.ftl.find(513), PagePlace::Flash(_)));
    check(&drive.ftl);
}

#[test]
fn a_discard_takes_no_page_that_it_does_not_cover() {
    let mut drive = tiny(DriveState::Steady, false, false);
    drive.submit(0, Command { id: 0, kind: Kind::Discard, offset_bytes: 4000, length_bytes: 8000, fua: false });
    drive.advance(1_000_000_000);
    assert_eq!(u64::from(drive.ftl.mapped), PAGES - 1);
}
