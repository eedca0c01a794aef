//! What a power cut may take, and takes: every sector written since the last FLUSH, as it was before.
//!
//! A FLUSH makes durable what was written before it arrived, and does so when it completes. So writes are kept in layers,
//! one for each FLUSH in flight and one for what came after the last; each layer knows a sector as it was when the layer
//! began. States that are taken while the load goes on are made of a log instead (`cuts`, `cut_recorder`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use dbdyno_common::random::Random;

use super::store::{CHUNK_BYTES, Chunk, ContentError, SECTOR_BYTES, Slot, Store, Usage, bytes_of, sectors};

/// How many chunks may be unflushed, 128 MiB in all. What is beyond is taken as written to the medium, as a drive does
/// when its cache is full; drives have 8 to 256 MiB.
const CHUNKS_MAX: usize = 8192;

/// A chunk before the first write of a layer, and the sectors written since.
struct SectorsBefore {
    sectors: u32,
    content: Slot,
}

#[derive(Default)]
pub struct Layer(BTreeMap<usize, SectorsBefore>);

/// What a power cut did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Lost {
    /// Sectors (of the size asked for) that were written and not flushed.
    pub unflushed_sectors: u64,
    /// Those of them that are as they were before.
    pub lost_sectors: u64,
}

/// The layers, oldest first; the last takes new writes.
pub struct Unflushed {
    layers: VecDeque<Layer>,
    /// The number of the first layer; numbers only grow.
    first: u64,
    chunks: usize,
}

impl Unflushed {
    pub fn new() -> Self {
        Self { layers: VecDeque::from([Layer::default()]), first: 0, chunks: 0 }
    }

    /// Chunks with something unflushed, counted once for each layer.
    pub fn chunks(&self) -> usize {
        self.chunks
    }

    /// Notes that sectors of a chunk are about to be written; `content` gives the chunk as it is.
    pub fn note<E>(
        &mut self,
        index: usize,
        written: u32,
        content: impl FnOnce() -> Result<Slot, E>,
    ) -> Result<Option<Layer>, E> {
        let Some(layer) = self.layers.back_mut() else { return Ok(None) };
        if let Some(before) = layer.0.get_mut(&index) {
            before.sectors |= written;
            return Ok(None);
        }
        layer.0.insert(index, SectorsBefore { sectors: written, content: content()? });
        self.chunks += 1;
        Ok(if self.chunks > CHUNKS_MAX { self.destage() } else { None })
    }

    /// Takes the oldest chunk as written to the medium, lowest address first. Returned so that its memory is given back
    /// outside any lock; `None` if there is no chunk.
    pub fn destage(&mut self) -> Option<Layer> {
        let layer = self.layers.iter_mut().find(|layer| !layer.0.is_empty())?;
        let (index, before) = layer.0.pop_first()?;
        self.chunks -= 1;
        Some(Layer(BTreeMap::from([(index, before)])))
    }

    /// A FLUSH has arrived; returns what to give [`Unflushed::flushed`] when it completes.
    pub fn seal(&mut self) -> u64 {
        self.layers.push_back(Layer::default());
        self.first + self.layers.len() as u64 - 2
    }

    /// The number of the layer that takes new writes.
    pub fn latest(&self) -> u64 {
        self.first + self.layers.len() as u64 - 1
    }

    /// A FLUSH has completed: what came before it is durable. Returns it so that memory is given back outside any lock.
    pub fn flushed(&mut self, sealed: u64) -> Vec<Layer> {
        let mut durable = Vec::new();
        while self.first <= sealed && self.layers.len() > 1 {
            durable.extend(self.layers.pop_front());
            self.first += 1;
        }
        self.chunks -= durable.iter().map(|layer| layer.0.len()).sum::<usize>();
        durable
    }

    /// A forced write has completed: a part of a chunk is durable as it is now.
    pub fn forced(&mut self, index: usize, within: usize, length: usize, now: &Slot, usage: &Usage) {
        for before in self.layers.iter_mut().filter_map(|layer| layer.0.get_mut(&index)) {
            let chunk = before.content.get_or_insert_with(|| Arc::new(Chunk::new(vec![0; CHUNK_BYTES].into(), usage)));
            let part = within..within + length;
            Arc::make_mut(chunk).bytes[part.clone()].copy_from_slice(&bytes_of(now)[part]);
            before.sectors &= !sectors(within, length);
        }
    }

    /// Everything there is counts as durable, because the content was replaced as a whole.
    pub fn forget(&mut self) -> Vec<Layer> {
        self.seal();
        self.flushed(u64::MAX)
    }

    /// Cuts the power: of the unflushed sectors, those of a random subset are put back to what they were. The share
    /// that survives is drawn first, so that some cuts take nearly all and some nearly nothing; then every sector of
    /// `sector_bytes` has its own chance, which tears requests and loses early ones while later ones survive.
    pub fn cut(
        &mut self,
        random: &mut Random,
        sector_bytes: usize,
        store: &mut dyn Store,
        usage: &Usage,
    ) -> Result<Lost, ContentError> {
        let (survival, mut counted) = (random.unit(), Lost::default());
        // Newest first: a sector that a later layer loses may have been lost by an earlier one as well.
        for layer in self.forget().into_iter().rev() {
            for (index, before) in layer.0 {
                let mut lost = 0;
                for at in (0..CHUNK_BYTES).step_by(sector_bytes) {
                    let written = before.sectors & sectors(at, sector_bytes);
                    if written != 0 {
                        counted.unflushed_sectors += 1;
                        if !random.chance(survival) {
                            counted.lost_sectors += 1;
                            lost |= written;
                        }
                    }
                }
                put_back(store, index, lost, before.content, usage)?;
            }
        }
        Ok(counted)
    }
}

fn put_back(store: &mut dyn Store, index: usize, lost: u32, before: Slot, usage: &Usage) -> Result<(), ContentError> {
    match lost {
        0 => Ok(()),
        u32::MAX => store.put(index, before),
        _ => {
            let zeros = || Arc::new(Chunk::new(vec![0; CHUNK_BYTES].into(), usage));
            let mut mixed = store.chunk(index)?.unwrap_or_else(zeros);
            let bytes = &mut Arc::make_mut(&mut mixed).bytes;
            for sector in (0..CHUNK_BYTES / SECTOR_BYTES).filter(|sector| lost & (1 << sector) != 0) {
                let part = sector * SECTOR_BYTES..(sector + 1) * SECTOR_BYTES;
                bytes[part.clone()].copy_from_slice(&bytes_of(&before)[part]);
            }
            store.put(index, Some(mixed))
        }
    }
}
